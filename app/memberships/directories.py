"""People whom a directory provisions by SCIM: only the directory changes what it says of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, ColumnExpressionArgument, Uuid, any_, bindparam, select

from app.core.actors import Actor
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.scim.models import ScimUser

ACTOR_PREFIX = "scim:"


FIND_MANAGED = Statement(
    "scim_users.find_managed",
    select(ScimUser.id, ScimUser.has_mapped_role).where(
        ScimUser.id == any_(bindparam("ids", type_=ARRAY(Uuid))), ScimUser.deleted_at.is_(None)
    ),
)
"""Of these users those whom a directory provisions, and whether a group gives their role."""


class ManagedByDirectory(Conflict):
    code = "managed_by_directory"
    detail = "A directory manages this user; change the user there."


def has_mapped_role(
    tenant_id: ColumnExpressionArgument[UUID], user_id: ColumnExpressionArgument[UUID]
) -> ColumnElement[Any]:
    """A column: None for a user whom no directory provisions, else whether a group gives the role."""
    return (
        select(ScimUser.has_mapped_role)
        .where(
            ScimUser.tenant_id == tenant_id, ScimUser.id == user_id, ScimUser.deleted_at.is_(None)
        )
        .scalar_subquery()
    )


def gives_role(user_id: UUID) -> bool:
    """Whether a group gives the user's role."""
    return any(one.has_mapped_role for one in FIND_MANAGED.all(ids=[user_id]))


def check_may_change(*, is_managed: bool, actor: Actor) -> None:
    """Raise ManagedByDirectory unless the actor is the directory, or none manages the value."""
    if is_managed and not actor.id.startswith(ACTOR_PREFIX):
        raise ManagedByDirectory
