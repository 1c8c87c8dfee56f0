"""DELETE /v1/users/{user_id}."""

from __future__ import annotations

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.memberships.owners import LastOwner, OwnerOnly
from app.privacy import erasure
from app.privacy.schemas import UserErasureSchema
from app.users.models import UserErasure

blp = Blueprint("privacy", __name__, url_prefix="/v1/users", description="Erasing people.")


@blp.delete("/<user_id>")
@requires(Permission.USERS_WRITE)
@blp.response(202, UserErasureSchema)
@blp.raises(OwnerOnly, LastOwner)
def request_erasure(user_id: str) -> UserErasure:
    """Erase a user, who is deactivated at once; a job does the rest.

    The user, the memberships and all that the tenant stores about the person are deleted or
    redacted. A user of the same person in another tenant is not changed. What the platform stores
    is erased too if a platform credential asks for it and the person is in no other tenant.
    """
    return erasure.request(user_id, actor=current_actor())


BLUEPRINTS = (blp,)
