"""Whose rows are visible: one tenant's, every tenant's (platform), or nobody's.

The scope is set for each transaction of PostgreSQL, as transaction-local settings that the
row-level security policies read, and kept beside the session so that queries
name the tenant explicitly as well (the index is used, and a mistake in one of
the two is caught by the other). Without a scope no tenant-owned row is visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from app.core.db import transactions

# Audit rows of what belongs to no tenant (presets, platform keys) carry this id.
PLATFORM_TENANT_ID = UUID(int=0)


@dataclass(frozen=True)
class Scope:
    """``tenant_id`` None means every tenant (a platform credential, a worker, the CLI)."""

    tenant_id: UUID | None

    @property
    def settings(self) -> str:
        """SQL that has row-level security show these rows until a transaction ends."""
        # .hex, so that nothing but a UUID gets into the text
        tenant, platform = (self.tenant_id.hex, "") if self.tenant_id else ("", "on")
        return (
            f"SELECT set_config('app.tenant_id', '{tenant}', true),"
            f" set_config('app.platform', '{platform}', true)"
        )


PLATFORM = Scope(None)


def enter(scope: Scope) -> None:
    """Make ``scope`` hold for the rest of the current transaction."""
    transactions.accompany(scope.settings.encode())
    note(scope)


def note(scope: Scope) -> None:
    """The same where PostgreSQL has set it for the rest of the transaction already."""
    transactions.context()["scope"] = scope


def current_scope() -> Scope:
    """The scope of the current transaction; raises RuntimeError where none was entered."""
    scope = transactions.context().get("scope")
    if scope is None:
        raise RuntimeError("no tenant scope in this transaction")
    return scope  # type: ignore[no-any-return]


def narrow(tenant_id: UUID | None) -> UUID | None:
    """The tenant that a list shows, given its ``?tenant_id=``; None is every tenant.

    A tenant's credential that names another tenant gets that tenant's id back, whose rows
    row-level security does not show it: an empty list.
    """
    return tenant_id or current_scope().tenant_id
