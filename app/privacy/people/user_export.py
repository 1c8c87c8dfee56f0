"""Export of one user of one tenant, as clients request it.

It reads by indexes, in the request's transaction. Events, deliveries, the webhook inbox, stored
answers and files of imports are read from one end to the other by ``flask users export`` only.
What the platform stores about the address is in the export of a platform credential.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from app.audit.models import AuditEvent
from app.audit.service import record
from app.core.actors import Actor
from app.core.db.pages import ListOrder, Page, Paging, paginate
from app.core.db.queries import Change, check_precondition
from app.core.db.statements import Statement
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.emails.suppressions import normalized
from app.privacy.export_rows import as_json
from app.privacy.people.person_rows import CONTACTS, tenant_column
from app.users import service as users
from app.users.models import User

MOST = 1_000  # rows of a table
NEWEST = Paging(limit=MOST, order=ListOrder.NEWEST_FIRST)


def _export(table: str, columns: str, condition: str) -> Statement:
    sql = f"SELECT {columns} FROM {table} WHERE {condition} LIMIT {MOST + 1}"  # noqa: S608
    return Statement(f"{table}.export", sql)


OF_USER = {
    table: _export(table, "*", f"tenant_id = :tenant_id AND {column} = :user_id")
    for table, column in {
        "memberships": "user_id",
        "join_requests": "user_id",
        "scim_users": "id",
        "scim_emails": "user_id",
        "scim_members": "user_id",
    }.items()
}
_MEMBERSHIP = "SELECT id FROM memberships WHERE tenant_id = :tenant_id AND user_id = :user_id"
OF_USER["role_assignments"] = _export(
    "role_assignments", "*", f"tenant_id = :tenant_id AND membership_id IN ({_MEMBERSHIP})"
)
OF_CONTACT = {
    table.name: _export(
        table.name,
        ", ".join(("id", *names)),
        f"{tenant_column(table).key} = :tenant_id AND lower({names[0]}) = :address",
    )
    for table, names in CONTACTS.items()
}
OF_AUDIT = ("audit_events", "actions")
OF_PLATFORM = (EmailEventRecord, EmailMessage, Suppression)


def export_user(user_id: UUID | str, *, actor: Actor, with_audit: bool) -> dict[str, object]:
    """The newest rows about a user, at most :data:`MOST` of a table.

    Without ``with_audit`` the audit rows are left out. Raises NotFound and PreconditionFailed.
    """
    user = users.get_user(user_id)
    check_precondition(user)
    found = dict(_pages(user, is_platform=actor.is_platform, with_audit=with_audit))
    record("user.exported", user, Change({}, {"is_everywhere": actor.is_platform}), actor=actor)
    incomplete = [
        name for name, page in found.items() if page.next_cursor or len(page.items) > MOST
    ]
    return {
        "tenant_id": user.tenant_id,
        "user_id": user.id,
        "tables": {
            name: [as_json(row._asdict()) for row in page.items[:MOST]]
            for name, page in found.items()
        },
        "incomplete": [*incomplete, *(name for name in OF_AUDIT if name not in found)],
    }


def _pages(user: User, *, is_platform: bool, with_audit: bool) -> Iterator[tuple[str, Page]]:
    """The name of each table, and its rows; ``actions`` are the audit rows of what the user did."""
    tenant_id, address = user.tenant_id, normalized(user.email)
    yield "users", Page([user], None)
    for name, statement in OF_USER.items():
        yield name, Page(statement.all(tenant_id=tenant_id, user_id=user.id), None)
    for name, statement in OF_CONTACT.items() if address else ():
        yield name, Page(statement.all(tenant_id=tenant_id, address=address), None)
    if with_audit:
        target = {"target_type": "user", "target_id": str(user.id)}
        yield "audit_events", paginate(AuditEvent, NEWEST, equal=target, tenant_id=tenant_id)
        actor, values = {"actor": str(user.id)}, ("before", "after")
        actions = paginate(AuditEvent, NEWEST, equal=actor, tenant_id=tenant_id, without=values)
        yield "actions", actions
    for model in OF_PLATFORM if is_platform and address else ():
        yield model.__tablename__, paginate(model, NEWEST, equal={"address": address})
