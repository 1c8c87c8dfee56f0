"""Whose rows are visible: one tenant's, every tenant's (the platform), or nobody's.

The row-level security policies read transaction-local settings. :func:`enter` sets them; for
requests the database functions ``authenticate_user`` and ``authenticate_key`` set them in the same
statement that finds the credential (see :mod:`app.auth.principals`). Queries name the tenant
explicitly as well. So PostgreSQL uses the indexes, and a mistake in either a query or a policy does
not show another tenant's rows. Without a scope no tenant-owned row is visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, func, select

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction

# Audit rows of what belongs to no tenant (presets, platform keys) carry this id.
PLATFORM_TENANT_ID = UUID(int=0)

SqlText = str | ColumnElement[str]


def settings(tenant_id: SqlText, platform: SqlText) -> tuple[ColumnElement[Any], ...]:
    """Columns with which a statement sets the scope, and tells the server's process id."""
    return (
        func.set_config("app.tenant_id", tenant_id, True),
        func.set_config("app.platform", platform, True),
        func.pg_backend_pid().label("server_process_id"),
    )


SET_SCOPE = Statement(
    "tenancy.set_scope", select(*settings(bindparam("tenant_id"), bindparam("platform")))
)
ENTER_PLATFORM = settings("", "on")
"""Columns with which another statement enters the platform's scope; call :func:`note` after it."""


@dataclass(frozen=True)
class Scope:
    """``tenant_id`` None means every tenant (a platform credential, a worker, the CLI)."""

    tenant_id: UUID | None


PLATFORM = Scope(None)


def enter(scope: Scope) -> None:
    """Make ``scope`` hold for the rest of the current transaction."""
    note(scope, SET_SCOPE.one(**values_of(scope)).server_process_id)


def values_of(scope: Scope) -> dict[str, str]:
    """The values of :func:`settings` for ``scope``."""
    if scope.tenant_id is None:
        return {"tenant_id": "", "platform": "on"}
    return {"tenant_id": str(scope.tenant_id), "platform": ""}


def note(scope: Scope, server_process_id: int) -> None:
    """Record a scope that PostgreSQL has already set for the rest of the transaction."""
    current = current_transaction()
    if current.prepared is not None:
        current.prepared.note_server(server_process_id, current.cursor.connection)
    current.scope = scope


def current_scope() -> Scope:
    """The scope of the current transaction; RuntimeError where none was entered."""
    scope = current_transaction().scope
    if scope is None:
        raise RuntimeError("no tenant scope in this transaction")
    return scope


def narrow(tenant_id: UUID | None) -> UUID | None:
    """The tenant whose rows a list shows: that of ``?tenant_id=``, else the scope's.

    The result None means all tenants.

    If a tenant's credential names another tenant, the list is empty, because row-level security
    hides that tenant's rows.
    """
    return tenant_id or current_scope().tenant_id
