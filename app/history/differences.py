"""The difference between two moments of a tenant: which rows changed, from what to what, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from app.core.db import queries
from app.core.db.statements import Statement
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.history import past
from app.tenants.models import Tenant

MAX_CHANGES, MAX_BYTES = 10_000, 8 * 1024 * 1024
IN_RANGE = (
    " FROM past.trail WHERE tenant_id = :tenant_id"
    " AND (row_id IS NOT NULL OR target_type = 'resource')"  # whose ids are no UUIDs
    " AND position > :since AND position <= :until"
)
SIZE = Statement(
    "history.size_of_changes",
    f"""
    SELECT count(*) AS changes, coalesce(sum(bytes), 0) AS bytes FROM (
        SELECT octet_length(before::text) + octet_length(after::text) AS bytes
        {IN_RANGE} LIMIT :most + 1
    ) seen
    """,  # noqa: S608 - no input
)
FIND = Statement(
    "history.find_changes",
    f"""
    WITH changed AS (SELECT * {IN_RANGE}), fields AS (
        SELECT target_type, target_id, key AS field,
            (array_agg(before -> key ORDER BY position, number))[1] AS before,
            (array_agg(after -> key ORDER BY position DESC, number DESC))[1] AS after
        FROM changed c, LATERAL (
            SELECT json_object_keys(c.before) UNION SELECT json_object_keys(c.after)
        ) keys (key)
        WHERE past.is_change(c.action)
        GROUP BY target_type, target_id, key
    )
    SELECT c.target_type, c.target_id, c.first_at, c.last_at, c.actions, c.actors, c.reasons,
        c.id, coalesce((
            SELECT json_object_agg(f.field, json_build_object('before', f.before, 'after', f.after)
                ORDER BY f.field)
            FROM fields f WHERE f.target_type = c.target_type AND f.target_id = c.target_id
                AND f.before::text IS DISTINCT FROM f.after::text
        ), '{{}}') AS changes
    FROM (
        SELECT target_type, target_id, min(created_at) AS first_at, max(created_at) AS last_at,
            CASE WHEN bool_or(request_id ^@ 'rewind:') THEN '{{rewind}}' ELSE '{{}}' END::text[] AS reasons,
            array_agg(DISTINCT action) AS actions, max(position) AS position,
            (array_agg(id ORDER BY position DESC, number DESC))[1] AS id,
            ARRAY(
                SELECT name FROM unnest(array_agg(actor ORDER BY position DESC, number DESC))
                    WITH ORDINALITY AS made (name, place) GROUP BY name ORDER BY min(place)
            ) AS actors
        FROM changed GROUP BY target_type, target_id
    ) c ORDER BY c.last_at, c.position, c.target_id
    """,  # noqa: S608 - no input
)


class TooManyChanges(Conflict):
    code = "too_many_changes"
    detail = f"There are more than {MAX_CHANGES} changes; choose moments that are closer."


def list_changes(tenant_id: UUID | str, since: str, until: str | None) -> Sequence[Any]:
    """The rows of the tenant that changed after ``since``, up to ``until`` (None: until now).

    Both are times or positions, as :func:`app.history.past.find` reads them. Each row is there
    once, in the order of the last changes, with each field that differs before and after. Raises
    Invalid, TooManyChanges, and NotFound, also for a moment before the tenant.
    """
    tenant = queries.get_row(Tenant, queries.visible_id(tenant_id))
    start, place = past.find(since, ("query", "from")), ("query", "to")
    end = None if until is None else past.find(until, place)
    if end and (end.position, end.time) < (start.position, start.time):
        raise Invalid(value_error(place, "must not be before `from`", until))
    values = {
        "tenant_id": tenant.id,
        "since": start.position,
        "until": end.position if end else 2**62,
    }
    if start.time < tenant.created_at:
        raise NotFound.of(Tenant)
    size = SIZE.one(**values, most=MAX_CHANGES)
    if size.changes > MAX_CHANGES or size.bytes > MAX_BYTES:
        raise TooManyChanges
    return FIND.all(**values)
