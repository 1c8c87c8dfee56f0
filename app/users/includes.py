"""The keys that reads of users can include."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import ARRAY, any_, bindparam, select

from app.auth.permissions import Permission
from app.core.db.statements import Statement
from app.core.http.includes import Include
from app.core.validation.fields import ListOf, Nested
from app.memberships.models import Membership
from app.memberships.schemas import TenantMembershipSchema

FIND_MEMBERSHIPS = Statement(
    "memberships.find_of_users",
    select(Membership)
    .where(
        Membership.tenant_id == any_(bindparam("tenant_ids", type_=ARRAY(sa.Uuid))),
        Membership.user_id == any_(bindparam("user_ids", type_=ARRAY(sa.Uuid))),
    )
    .order_by(Membership.created_at, Membership.id),
)


def _memberships(rows: Sequence[Any]) -> list[Any]:
    found: dict[UUID, list[Any]] = defaultdict(list)
    tenant_ids = sorted({row.tenant_id for row in rows})
    user_ids = [row.id for row in rows]
    for membership in FIND_MEMBERSHIPS.all(tenant_ids=tenant_ids, user_ids=user_ids):
        found[membership.user_id].append(membership)
    return [found[row.id] for row in rows]


MEMBERSHIPS = Include(
    "memberships",
    ListOf(
        Nested(TenantMembershipSchema),
        metadata={"description": "The user's membership; empty without one."},
    ),
    _memberships,
    Permission.MEMBERSHIPS_READ,
)
