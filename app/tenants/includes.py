"""The key that reads of tenants can include besides those of every resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ARRAY, any_, bindparam, select

from app.core.db.statements import Statement
from app.core.http.includes import Include, by_key
from app.core.validation.fields import JsonObject
from app.tenants.models import Tenant

FIND_META_DATA = Statement(
    "tenants.find_meta_data",
    select(Tenant.id, Tenant.meta_data).where(
        Tenant.id == any_(bindparam("keys", type_=ARRAY(sa.Uuid)))
    ),
)


def _meta_data(rows: Sequence[Any]) -> list[Any]:
    found = by_key(FIND_META_DATA, [row.id for row in rows])
    return [found[row.id].meta_data for row in rows]


META_DATA = Include("meta_data", JsonObject(), _meta_data)
