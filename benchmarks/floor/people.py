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
SEARCHABLE_FIELD = """
    SELECT f.id, i.state FROM custom_fields f
    JOIN custom_field_indexes i ON i.tenant_id = f.tenant_id AND i.field_id = f.id
    WHERE f.tenant_id = %s AND f.entity_type = 'user' AND f.field_key = %s
        AND f.is_searchable AND f.is_active"""
SEARCH_USERS = f"""
    SELECT {USER_COLUMNS} FROM users WHERE tenant_id = %s AND id IN (
        SELECT entity_id FROM custom_field_index_rows
        WHERE tenant_id = %s AND field_id = %s AND text_key = %s
    ) ORDER BY created_at, id LIMIT %s"""
LOCK_USER = """
    SELECT meta_data, (
        SELECT json_object_agg(f.field_key, json_build_array(f.field_type, f.options, f.id))
        FROM custom_fields f
        WHERE f.tenant_id = u.tenant_id AND f.entity_type = 'user' AND f.is_active
    ) FROM users u WHERE tenant_id = %s AND id = %s FOR UPDATE"""
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
    query = _query(environ)
    limit = whole_number(query.get("limit", "50"), 1, 100)
    filters = [(name[10:], text) for name, text in query.items() if name.startswith("meta_data.")]
    if filters:
        ((key, text),) = filters
        field_id = _searchable(database, caller, key)
        database.execute(
            SEARCH_USERS, (caller.tenant_id, caller.tenant_id, field_id, text, limit + 1)
        )
    else:
        database.execute(LIST_USERS, (caller.tenant_id, limit + 1))
    rows = [dict(zip(USER, row, strict=True)) for row in database.fetchall()]
    cursor_ = f"{rows[limit]['created_at']}/{rows[limit]['id']}" if len(rows) > limit else None
    return [], dumps({"data": rows[:limit], "next_cursor": cursor_})


def _searchable(database: cursor, caller: Caller, key: str) -> str:
    field_id, state = one(database, SEARCHABLE_FIELD, (caller.tenant_id, key))
    if state != "ready":
        raise Refused("409 Conflict", "The search index is not ready.")
    return str(field_id)


def patch_meta_data(database: cursor, caller: Caller, environ: Environ, user_id: str) -> Answer:
    patches = json_body(environ).get("patches")
    if not isinstance(patches, dict):
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", "patches"]}])
    before, fields = one(database, LOCK_USER, (caller.tenant_id, uuid(user_id)))
    for key in patches.keys() & (fields or {}).keys():
        _check(key, patches[key], *fields[key][:2])
    after = merged(before, patches)
    text = orjson.dumps(after)
    if len(text) > 32_768:
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", "patches"]}])
    values = change(
        *(caller, environ, "user.meta_data_patched", user_id),
        *({"meta_data": before}, {"meta_data": after}),
    )
    return answer(USER, one(database, PATCH_META_DATA, {**values, "meta_data": text.decode()}))


def _check(key: str, value: Any, type_: str, options: list[str] | None) -> None:
    """The rules of the field types that the data has."""
    match type_:
        case "integer":
            good = type(value) is int
        case "select":
            good = value in (options or ())
        case _:
            good = False
    if value is not None and not good:
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", "patches", key]}])


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
