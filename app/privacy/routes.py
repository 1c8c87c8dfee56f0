"""Erasing and exporting people: DELETE /v1/users/{user_id}, POST /v1/users/{user_id}/export."""

from __future__ import annotations

from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.memberships.owners import LastOwner, OwnerOnly
from app.privacy.people import erasure_requests, user_export
from app.privacy.schemas import UserErasureSchema, UserExportSchema
from app.users.models import UserErasure

blp = Blueprint(
    "privacy", __name__, url_prefix="/v1/users", description="Erasing and exporting people."
)


@blp.delete("/<user_id>")
@requires(Permission.USERS_WRITE)
@blp.response(202, UserErasureSchema)
@blp.raises(OwnerOnly, LastOwner)
def request_erasure(user_id: str) -> UserErasure:
    """Erase a user in one tenant, which cannot be undone; the user is deactivated at once.

    A job does the rest: the user, the memberships and all that the tenant stores about the person
    are deleted or redacted. Users of the same person in other tenants stay as they are. What the
    platform stores is erased too if a platform credential asks for it and the person is no user,
    member or contact of another tenant, and no superadmin. To erase a person in all tenants, use
    `flask users erase`.
    """
    return erasure_requests.request(user_id, actor=current_actor())


@blp.post("/<user_id>/export")
@requires(Permission.USERS_WRITE)
@blp.response(200, UserExportSchema, shown_once=("tables",))
def export(user_id: str) -> dict[str, object]:
    """Export what is stored about a user in one tenant, table by table.

    The newest 1,000 rows of each table: the user, memberships, what a directory sent, where the
    address is a contact, the changes of the user, and what the user did (`actions`, without
    values). `audit_events` and `actions` also need `audit:read`; without it they are left out, and
    `incomplete` names them. For a platform credential also the records of e-mail. To
    export all rows of all tenants, received webhooks included, use `flask users export`. The export is recorded in the
    audit trail.
    """
    principal = current_principal()
    with_audit = principal.has(Permission.AUDIT_READ)
    return user_export.export_user(user_id, actor=principal.actor, with_audit=with_audit)


BLUEPRINTS = (blp,)
