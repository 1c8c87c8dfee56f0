"""The people of a connection: what SCIM stores in addition to the user and the membership.

A person of SCIM is a user with a membership. What only SCIM knows is in ``scim_users``; names,
address and activity are those of the user and the membership.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, case, func, or_, select

from app.core.db.models import Moment
from app.core.db.statements import Statement
from app.memberships.models import Membership
from app.scim.models import ScimGroup, ScimMember, ScimUser
from app.users.models import User

IS_ACTIVE: ColumnElement[bool] = func.coalesce(and_(User.is_active, Membership.is_active), False)
CHANGED_AT = func.greatest(ScimUser.updated_at, Membership.updated_at, type_=Moment)
_in_groups = (
    select(func.json_agg(func.json_build_array(ScimGroup.id, ScimGroup.display_name)))
    .select_from(ScimMember)
    .join(
        ScimGroup,
        and_(ScimGroup.tenant_id == ScimMember.tenant_id, ScimGroup.id == ScimMember.group_id),
    )
    .where(ScimMember.tenant_id == ScimUser.tenant_id, ScimMember.user_id == ScimUser.id)
    .scalar_subquery()
)
PEOPLE = (
    select(
        ScimUser,
        User,
        Membership,
        IS_ACTIVE.label("is_active"),
        CHANGED_AT.label("changed_at"),
        _in_groups.label("groups"),
    )
    .outerjoin(User, and_(User.tenant_id == ScimUser.tenant_id, User.id == ScimUser.id))
    .outerjoin(
        Membership,
        and_(Membership.tenant_id == ScimUser.tenant_id, Membership.user_id == ScimUser.id),
    )
    .where(
        ScimUser.tenant_id == bindparam("tenant_id"),
        ScimUser.connection_id == bindparam("connection_id"),
        ScimUser.deleted_at.is_(None),
    )
)
"""The people of a connection. All have a user; of an outer join that nothing uses, PostgreSQL reads
no row."""
GET = Statement("scim_users.get", PEOPLE.where(ScimUser.id == bindparam("id")))

_ids = any_(bindparam("idp_user_ids", type_=ARRAY(Text)))
_rank = case((User.idp_user_id == bindparam("first_id"), 0), (User.idp_user_id == _ids, 1), else_=2)
FIND = Statement(
    "scim_users.find_person",
    select(User, Membership, ScimUser)
    .outerjoin(
        Membership, and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id)
    )
    .outerjoin(ScimUser, and_(ScimUser.tenant_id == User.tenant_id, ScimUser.id == User.id))
    .where(
        User.tenant_id == bindparam("tenant_id"),
        or_(
            User.idp_user_id == _ids,
            and_(User.email_key == bindparam("email_key"), User.email_key != ""),
        ),
    )
    .order_by(_rank, User.is_active.desc(), User.id)
    .limit(1),
)


class PersonRow(Protocol):
    """A row of :data:`PEOPLE`; ``groups`` are ids and names."""

    ScimUser: ScimUser
    User: User
    Membership: Membership
    is_active: bool
    changed_at: datetime
    groups: list[tuple[str, str]] | None
