"""SSO connections: find, follow the identity provider, announce the ends of certificates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from app.audit.service import record, record_creation
from app.core.actors import SYSTEM_IDP, SYSTEM_JOB
from app.core.db import queries
from app.core.db.list_conditions import between
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row, writes
from app.sso_connections.models import SsoConnection, SsoState

NOTICE = timedelta(days=30)  # between the announcement of a certificate's end and the end
HIDDEN = frozenset({"announced_end"})
UPDATED = "sso_connection.updated"
ACTIONS: dict[str, str] = {
    SsoState.ACTIVE: "sso_connection.activated",
    SsoState.INACTIVE: "sso_connection.deactivated",
}
"""State that a connection has now, and did not have -> what has happened."""

TAKE_ENDING = Statement(
    "sso_connections.take_ending",
    """
    UPDATE sso_connections SET announced_end = certificate_ends_at WHERE id = ANY (ARRAY(
        SELECT id FROM sso_connections
        WHERE certificate_ends_at <= now() + :notice AND state = 'active'
            AND announced_end IS DISTINCT FROM certificate_ends_at
        ORDER BY certificate_ends_at LIMIT :limit FOR UPDATE SKIP LOCKED
    )) RETURNING *
    """,
)


def get_connection(connection_id: UUID | str) -> SsoConnection:
    """The connection; raises NotFound."""
    return queries.get_row(SsoConnection, connection_id)


def list_connections(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    certificate_ends_before: datetime | None = None,
    **equal: object,
) -> Page:
    """One page of a tenant's connections (of all, for the platform); ``equal``: columns' values."""
    ending = between(SsoConnection.certificate_ends_at, None, certificate_ends_before)
    return paginate(SsoConnection, paging, *ending, equal=equal, tenant_id=tenant_id)


def mirror(
    tenant_id: UUID, source: str, idp_connection_id: str, values: Mapping[str, Any] | None
) -> None:
    """Make the row equal what the identity provider says; ``values`` None: delete it."""
    key = {"tenant_id": tenant_id, "source": source, "idp_connection_id": idp_connection_id}
    row = queries.find_locked(SsoConnection, **key)
    if row is None:
        if values is not None:
            row = insert_row(SsoConnection, {**key, **values})
            record_creation(ACTIONS.get(row.state, UPDATED), row, actor=SYSTEM_IDP, hidden=HIDDEN)
        return
    if values is not None:
        row, change = queries.update_row(SsoConnection, row, values)
        action = ACTIONS.get(change.after.get("state", ""), UPDATED) if change else UPDATED
    else:
        queries.delete_row(SsoConnection, row)
        before = {name: value for name, value in row._asdict().items() if name not in HIDDEN}
        action, change = "sso_connection.deleted", Change(before, {})
    record(action, row, change, actor=SYSTEM_IDP, hidden=HIDDEN)


def announce_endings(limit: int) -> int:
    """Record which certificates of active connections end within :data:`NOTICE`; their number.

    Each end is recorded once.
    """
    ending = TAKE_ENDING.all(limit=limit, notice=NOTICE)
    with writes() as w:
        for row in ending:
            change = Change({}, {"certificate_ends_at": row.certificate_ends_at})
            action = "sso_connection.certificate_expiring"
            record(action, row, change, actor=SYSTEM_JOB, hidden=HIDDEN, into=w)
    return len(ending)
