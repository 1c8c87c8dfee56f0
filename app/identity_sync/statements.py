"""The SQL statements of :mod:`app.identity_sync.store`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ARRAY,
    Text,
    any_,
    bindparam,
    cast,
    column,
    func,
    literal,
    select,
    tuple_,
    union,
)
from sqlalchemy.dialects.postgresql import insert

from app.core.db.bulk import rows_from_arrays
from app.core.db.statements import Statement
from app.identity_sync.models import IdentityObject
from app.tenants.models import Tenant

USER = "user"  # the kind of users' objects


def _list(name: str, type_: Any) -> Any:
    """A parameter that is a list."""
    return cast(bindparam(name, type_=ARRAY(type_)), ARRAY(type_))


LOCK = Statement(
    "identity_objects.lock",
    """
        SELECT
            CASE WHEN shared THEN CAST(pg_advisory_xact_lock_shared(space, bucket) AS text)
                ELSE CAST(pg_advisory_xact_lock(space, bucket) AS text) END,
            ARRAY(
                SELECT idp_org_id FROM deleted_organizations
                WHERE idp_org_id = ANY (CAST(:organization_ids AS text[]))
            ) AS deleted_organization_ids
        FROM unnest(
            CAST(:spaces AS integer[]), CAST(:buckets AS integer[]), CAST(:shared AS boolean[])
        ) AS lock (space, bucket, shared)
        """,
)

_named = (
    func.unnest(_list("kinds", Text), _list("object_ids", Text))
    .table_valued(column("kind", Text), column("object_id", Text), name="named")
    .render_derived()
)
_pair = (
    func.unnest(_list("pair_organization_ids", Text), _list("pair_user_ids", Text))
    .table_valued(column("organization_id", Text), column("user_id", Text), name="pair")
    .render_derived()
)
_stored = IdentityObject.__table__.alias("stored").c
_of_source = _stored.source == bindparam("source")
_of_new_tenant = (
    _of_source
    & (_stored.organization_id == any_(_list("organization_ids", Text)))
    & ~select(Tenant.id).where(Tenant.idp_org_id == _stored.organization_id).exists()
)
_wanted = union(
    select(_named.c.kind, _named.c.object_id),
    select(_stored.kind, _stored.object_id).where(
        _of_source,
        _stored.organization_id == _pair.c.organization_id,
        _stored.user_id == _pair.c.user_id,
    ),
    select(_stored.kind, _stored.object_id).where(
        _of_source, _stored.user_id == any_(_list("user_ids", Text))
    ),
    select(_stored.kind, _stored.object_id).where(_of_new_tenant),
    select(literal(USER, Text), _stored.user_id).where(_of_new_tenant),
)
LOAD = Statement(
    "identity_objects.load",
    select(IdentityObject).where(
        IdentityObject.source == bindparam("source"),
        tuple_(IdentityObject.kind, IdentityObject.object_id).in_(_wanted),
    ),
)

COLUMNS = tuple(IdentityObject.__table__.columns.keys())
CHANGEABLE = ("organization_id", "user_id", "is_deleted", "is_waiting", "state", "updated_at")
_new = insert(IdentityObject).from_select(
    COLUMNS, rows_from_arrays(IdentityObject.__table__, COLUMNS), include_defaults=False
)
SAVE = Statement(
    "identity_objects.save",
    _new.on_conflict_do_update(
        index_elements=["source", "kind", "object_id"],
        set_={name: _new.excluded[name] for name in CHANGEABLE},
    ),
)
