"""Users and memberships."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import orjson
from psycopg2.extensions import cursor

from benchmarks.floor.core import (
    AUDITED,
    Answer,
    Caller,
    Environ,
    Refused,
    answer,
    change,
    dumps,
    json_body,
    one,
    uuid,
    whole_number,
)

RANKS = {"owner": 4, "admin": 3, "billing": 2, "member": 1, "viewer": 0}

USER = (
    *("id", "tenant_id", "idp_org_id", "created_at", "created_by_user_id", "updated_at"),
    *("updated_by_user_id", "idp_user_id", "email", "first_name", "last_name", "is_active"),
    "meta_data",
)
USER_COLUMNS = ", ".join(USER)
GET_USER = f"SELECT version, {USER_COLUMNS} FROM users WHERE tenant_id = %s AND id = %s"
LIST_USERS = (
    f"SELECT {USER_COLUMNS} FROM users WHERE tenant_id = %s ORDER BY created_at, id LIMIT %s"
)
PATCH_META_DATA = f"""
    WITH changed AS (
        UPDATE users SET meta_data = %(meta_data)s, updated_at = now(),
            updated_by_user_id = %(actor)s, version = version + 1
        WHERE tenant_id = %(tenant)s AND id = %(id)s RETURNING *
    ), audited AS ({AUDITED}) SELECT version, {USER_COLUMNS} FROM changed"""

MEMBERSHIP = (
    *("id", "tenant_id", "idp_org_id", "created_at", "created_by_user_id", "updated_at"),
    *("updated_by_user_id", "user_id", "idp_membership_id", "role", "is_active"),
)
MEMBERSHIP_COLUMNS = ", ".join(MEMBERSHIP)
GET_ROLE = "SELECT role FROM memberships WHERE tenant_id = %s AND id = %s FOR UPDATE"
PATCH_ROLE = f"""
    WITH changed AS (
        UPDATE memberships SET role = %(role)s, updated_at = now(),
            updated_by_user_id = %(actor)s, version = version + 1
        WHERE tenant_id = %(tenant)s AND id = %(id)s RETURNING *
    ), audited AS ({AUDITED}) SELECT version, {MEMBERSHIP_COLUMNS} FROM changed"""


def get_user(database: cursor, caller: Caller, environ: Environ, user_id: str) -> Answer:
    return answer(USER, one(database, GET_USER, (caller.tenant_id, uuid(user_id))))


def list_users(database: cursor, caller: Caller, environ: Environ) -> Answer:
    limit = whole_number(_query(environ).get("limit", "50"), 1, 100)
    database.execute(LIST_USERS, (caller.tenant_id, limit + 1))
    rows = [dict(zip(USER, row, strict=True)) for row in database.fetchall()]
    cursor_ = f"{rows[limit]['created_at']}/{rows[limit]['id']}" if len(rows) > limit else None
    return [], dumps({"data": rows[:limit], "next_cursor": cursor_})


def patch_meta_data(database: cursor, caller: Caller, environ: Environ, user_id: str) -> Answer:
    patches = json_body(environ).get("patches")
    if not isinstance(patches, dict):
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", "patches"]}])
    row = one(database, f"{GET_USER} FOR UPDATE", (caller.tenant_id, uuid(user_id)))
    before, after = row[-1], merged(row[-1], patches)
    text = orjson.dumps(after)
    if len(text) > 32_768:
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", "patches"]}])
    values = change(
        *(caller, environ, "user.meta_data_patched", user_id),
        *({"meta_data": before}, {"meta_data": after}),
    )
    return answer(USER, one(database, PATCH_META_DATA, {**values, "meta_data": text.decode()}))


def patch_role(database: cursor, caller: Caller, environ: Environ, membership_id: str) -> Answer:
    role = _query(environ).get("role", "")
    if role not in RANKS:
        raise Refused("422 Unprocessable Entity", [{"loc": ["query", "role"]}])
    (before,) = one(database, GET_ROLE, (caller.tenant_id, uuid(membership_id)))
    if max(RANKS[role], RANKS[before]) > RANKS[caller.role]:
        raise Refused("403 Forbidden", "Nobody grants a role above their own.")
    values = change(
        *(caller, environ, "membership.role_changed", membership_id),
        *({"role": before}, {"role": role}),
    )
    return answer(MEMBERSHIP, one(database, PATCH_ROLE, {**values, "role": role}))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merged(target.get(name), value)
    return target


def _query(environ: Environ) -> dict[str, str]:
    """The last value of each parameter."""
    return {name: values[-1] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
