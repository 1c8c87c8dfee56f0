"""The keys that reads of memberships can include."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ARRAY, any_, bindparam, select

from app.auth.permissions import Permission
from app.core.db.statements import Statement
from app.core.http.includes import Include, by_key
from app.core.validation.fields import Bool, Nested, Str, Uuid
from app.core.validation.schemas import Schema
from app.users.models import User

FIND_USERS = Statement(
    "users.find_summaries",
    select(
        User.id, User.idp_user_id, User.email, User.first_name, User.last_name, User.is_active
    ).where(User.id == any_(bindparam("keys", type_=ARRAY(sa.Uuid)))),
)


class UserSummarySchema(Schema):
    """The member."""

    examples = {
        "idp_user_id": "user_01JZ4M",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
    descriptions = {
        "idp_user_id": "The identity provider's id of the person.",
        "email": "The person's e-mail address.",
        "first_name": "The person's first name; empty if unknown.",
        "last_name": "The person's last name; empty if unknown.",
        "is_active": "False: the user is deactivated, and has no access.",
    }

    id = Uuid(required=True)
    idp_user_id = Str(required=True)
    email = Str(required=True)
    first_name = Str(required=True)
    last_name = Str(required=True)
    is_active = Bool(required=True)


def _users(rows: Sequence[Any]) -> list[Any]:
    found = by_key(FIND_USERS, [row.user_id for row in rows])
    return [found.get(row.user_id) for row in rows]


USER = Include(
    "user",
    Nested(UserSummarySchema, metadata={"description": "The member."}),
    _users,
    Permission.USERS_READ,
)
