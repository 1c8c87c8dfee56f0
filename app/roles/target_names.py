"""``include=target_name``: whom a role is assigned to."""

from __future__ import annotations

from sqlalchemy import ARRAY, Uuid, any_, bindparam, func, select, union_all

from app.auth.models import ApiKey
from app.core.db.statements import Statement
from app.core.http.includes import related
from app.core.validation.fields import Str
from app.memberships.models import Membership
from app.scim.models import ScimGroup
from app.users.models import User

_keys = any_(bindparam("keys", type_=ARRAY(Uuid)))
_full_name = func.nullif(func.trim(func.concat_ws(" ", User.first_name, User.last_name)), "")
_people = select(Membership.id, func.coalesce(_full_name, User.email).label("name")).join(
    User, (User.tenant_id == Membership.tenant_id) & (User.id == Membership.user_id)
)
_groups, _api_keys = select(ScimGroup.id, ScimGroup.display_name), select(ApiKey.id, ApiKey.name)
_named = ((_people, Membership), (_groups, ScimGroup), (_api_keys, ApiKey))
FIND = union_all(*(rows.where(model.id == _keys) for rows, model in _named))
TARGET_NAME = related(
    "target_name",
    Str(nullable=True, description="The name of the person, the group or the API key."),
    Statement("role_assignments.target_names", FIND),
    lambda row: row.membership_id or row.group_id or row.api_key_id,
    column="name",
)
