"""The scope decides which rows are visible: those of one tenant, or those of all (the platform).

The row-level security policies read transaction-local settings. :func:`enter` sets them. For
requests, the database functions ``authenticate_user`` and ``authenticate_key`` set them in the
statement that finds the credential (see :mod:`app.auth.principals`). Queries also have a condition
on the tenant. So PostgreSQL uses the indexes, and a mistake in a query alone, or in a policy alone,
does not show another tenant's rows. Without a scope no tenant-owned row is visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, func, select

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction, savepoint, transaction

# In the audit trail, the tenant_id of changes to rows without a tenant (presets, platform keys).
PLATFORM_TENANT_ID = UUID(int=0)

SqlText = str | ColumnElement[str]


def owner_of(tenant_id: UUID) -> UUID | None:
    """The tenant of a row's ``tenant_id``; None for the platform."""
    return None if tenant_id == PLATFORM_TENANT_ID else tenant_id


def settings(tenant_id: SqlText, platform: SqlText) -> tuple[ColumnElement[Any], ...]:
    """Columns of a SELECT that set the scope."""
    return (
        func.set_config("app.tenant_id", tenant_id, True),
        func.set_config("app.platform", platform, True),
    )


SET_SCOPE = Statement(
    "tenancy.set_scope", select(*settings(bindparam("tenant_id"), bindparam("platform")))
)
ENTER_PLATFORM = settings("", "on")
"""Columns that let another SELECT enter the platform's scope. Call :func:`note` after it."""


@dataclass(frozen=True)
class Scope:
    """``tenant_id`` None means all tenants (for a platform credential, a job or a command)."""

    tenant_id: UUID | None


PLATFORM = Scope(None)


def enter(scope: Scope) -> None:
    """Set the scope of the current transaction, until the next :func:`enter` or its end."""
    SET_SCOPE.execute(**values_of(scope))
    note(scope)


@contextmanager
def platform_transaction() -> Iterator[None]:
    """Run the block in one transaction, in the platform's scope."""
    with transaction():
        enter(PLATFORM)
        yield


class _TrialIsOver(Exception):
    """Rolls a trial back."""


@contextmanager
def platform_trial() -> Iterator[None]:
    """Run the block as :func:`platform_transaction` does, and roll the transaction back."""
    with suppress(_TrialIsOver), platform_transaction():
        yield
        raise _TrialIsOver


@contextmanager
def in_platform_scope() -> Iterator[None]:
    """Run the block in the platform's scope, and return to the present scope after it."""
    scope = current_scope()
    enter(PLATFORM)
    yield
    enter(scope)


@contextmanager
def trial() -> Iterator[None]:
    """Run the block in a savepoint of the current transaction, and undo its changes."""
    with suppress(_TrialIsOver), savepoint():
        yield
        raise _TrialIsOver


def values_of(scope: Scope) -> dict[str, str]:
    """The values of the parameters of :data:`SET_SCOPE` for ``scope``."""
    if scope.tenant_id is None:
        return {"tenant_id": "", "platform": "on"}
    return {"tenant_id": str(scope.tenant_id), "platform": ""}


def note(scope: Scope) -> None:
    """Record the scope that a statement with :func:`settings` has set in PostgreSQL."""
    current_transaction().scope = scope


def current_scope() -> Scope:
    """The scope of the current transaction; RuntimeError if it has none."""
    scope = current_transaction().scope
    if scope is None:
        raise RuntimeError("no tenant scope in this transaction")
    return scope
