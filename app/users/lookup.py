"""Find users by an id or an e-mail address."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Uuid, bindparam, or_, select

from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.users.emails import email_key
from app.users.models import User

_find = (
    select(User)
    .where(or_(User.email_key == bindparam("email_key"), User.id == bindparam("id", type_=Uuid)))
    .limit(2)
)
FIND = Statement("users.find_by_name", _find)
FIND_IN_TENANT = Statement(
    "users.find_by_name_in_tenant", _find.where(User.tenant_id == bindparam("tenant_id"))
)


def find_users(named: str, tenant_id: UUID | None = None) -> Sequence[User]:
    """The users with this id or e-mail address, in whatever case; only of the tenant ``tenant_id`` if it is given.

    Returns at most two, which is enough to see that the name is ambiguous.
    """
    values = {"email_key": email_key(named), "id": id_or_none(named)}
    if tenant_id is None:
        return FIND.all(**values)
    return FIND_IN_TENANT.all(**values, tenant_id=tenant_id)
