"""Requests and answers of /v1/users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy
from sqlalchemy import ARRAY, any_, bindparam, select

from app.auth.permissions import Permission
from app.core.db.statements import Statement
from app.core.http.includes import Include
from app.core.http.pagination import ONE_TENANT
from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Email,
    JsonObject,
    ListOf,
    Name,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, Schema
from app.custom_fields.schemas import MetaDataQuerySchema
from app.memberships.models import Membership
from app.memberships.schemas import Person, TenantMembershipSchema
from app.search.filters import MAX_QUERY, MIN_QUERY
from app.search.schemas import BY_WORDS


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "idp_org_id": "org_01JZ4K",
        "created_by_user_id": "system:idp",
        "updated_by_user_id": "platform:operator",
        **Person.examples,
        "meta_data": {"cost_center": "R-12"},
        "patches": {"cost_center": "R-12", "desk": None},
    }
    descriptions = {
        **Person.descriptions,
        "meta_data": "Values of the user's custom fields, and any other values, by key.",
    }


class UserSchema(Documented, AnswerSchema):
    """A user."""

    id = Uuid()
    tenant_id = Uuid()
    idp_org_id = Str()
    created_at = AwareDateTime()
    created_by_user_id = Str()
    updated_at = AwareDateTime()
    updated_by_user_id = Str()
    idp_user_id = Str()
    email = Str()
    first_name = Str()
    last_name = Str()
    is_active = Bool()
    meta_data = JsonObject()


class UserCreateSchema(Documented):
    """A new, active user."""

    idp_user_id = Name(required=True, min_length=1)
    email = Email(required=True)
    first_name = Name()
    last_name = Name()
    meta_data = JsonObject()


class UserUpdateSchema(Documented):
    """The fields to change. Only a platform credential can change ``idp_user_id``."""

    idp_user_id = Name(min_length=1)
    email = Email()
    first_name = Name()
    last_name = Name()
    is_active = Bool()


class UserMetaDataPatchSchema(Documented):
    """A merge patch of a user's metadata."""

    patches = JsonObject(required=True, description="A merge patch (RFC 7396): null removes a key.")


class UserQuerySchema(Documented, MetaDataQuerySchema):
    """Filters of the list of users."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    is_active = Bool(description="Only active users, or only deactivated ones.")
    email = Str(description="Only users with this address, in whatever case.")
    idp_user_id = Str(description="Only this person, by the provider's id.")
    q = Str(min_length=MIN_QUERY, max_length=MAX_QUERY, metadata=BY_WORDS)


FIND_MEMBERSHIPS = Statement(
    "memberships.find_of_users",
    select(Membership)
    .where(
        Membership.tenant_id == any_(bindparam("tenant_ids", type_=ARRAY(sqlalchemy.Uuid))),
        Membership.user_id == any_(bindparam("user_ids", type_=ARRAY(sqlalchemy.Uuid))),
    )
    .order_by(Membership.created_at, Membership.id),
)


def _memberships(rows: Sequence[Any]) -> list[Any]:
    found: dict[str, list[Any]] = defaultdict(list)
    tenant_ids = sorted({str(row.tenant_id) for row in rows})
    user_ids = [str(row.id) for row in rows]
    for membership in FIND_MEMBERSHIPS.all(tenant_ids=tenant_ids, user_ids=user_ids):
        found[str(membership.user_id)].append(membership)
    return [found[user_id] for user_id in user_ids]


MEMBERSHIPS = Include(
    "memberships",
    ListOf(Nested(TenantMembershipSchema), description="The user's membership; empty without one."),
    _memberships,
    Permission.MEMBERSHIPS_READ,
)
