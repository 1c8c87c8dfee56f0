"""The keys that reads of tenants can include besides those of every resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ARRAY, bindparam, text

from app.auth.permissions import Permission
from app.config import current_config
from app.core.db.statements import Statement
from app.core.http.includes import Include, by_id, by_key, own_column, related, related_lists
from app.core.validation.fields import AwareDateTime, Int, JsonObject, ListOf, Nested, Str
from app.core.validation.schemas import AnswerSchema
from app.plans.models import PlanAssignment
from app.tenants.models import Tenant

FIND_PLAN_SOURCES = Statement(
    "tenants.find_plan_sources",
    text("SELECT d.tenant_id, d.source FROM decide_plans(:keys, :default_plan) d").bindparams(
        bindparam("keys", type_=ARRAY(sa.Uuid))
    ),
)


class TenantLimitSchema(AnswerSchema):
    """A limit of the plan, and what the tenant uses of it in the current period."""

    examples = {"feature": "api-calls", "limit": 10_000, "used": 17, "policy": "hard"}

    feature = Str()
    limit = Int(attribute="most", description="-1: unlimited.")
    used = Int(description="What is used in the current period.")
    policy = Str(metadata={"enum": ["hard", "soft"]})
    resets_at = AwareDateTime(
        nullable=True, attribute="ends", description="Null for a count that never starts anew."
    )


def _plan_sources(rows: Sequence[Any]) -> list[Any]:
    default_plan = current_config().default_plan
    found = by_key(FIND_PLAN_SOURCES, [row.id for row in rows], default_plan=default_plan)
    return [plan.source for plan in found]


META_DATA = related(
    "meta_data",
    JsonObject(description="The tenant's metadata."),
    by_id("tenants.find_meta_data", Tenant.id, Tenant.meta_data),
    lambda row: row.id,
    column="meta_data",
)
PLAN_SOURCE = Include(
    "plan_source",
    Str(
        metadata={
            "enum": ["assignment", "subscription", "kept", "default"],
            "description": "What decides the plan, as `/v1/tenants/{tenant_id}/plan` explains it.",
        }
    ),
    _plan_sources,
    Permission.BILLING_READ,
)
FIND_LIMITS = Statement(
    "tenants.find_limits",
    text(
        "SELECT each.tenant_id, u.* FROM unnest(:keys) AS each (tenant_id)"
        " CROSS JOIN LATERAL tenant_usage(each.tenant_id, NULL) u"
        ' ORDER BY each.tenant_id, u.feature COLLATE "C"'
    ).bindparams(bindparam("keys", type_=ARRAY(sa.Uuid))),
)
LIMITS = related_lists(
    "limits",
    ListOf(Nested(TenantLimitSchema), description="The limits of the plan, by `feature`."),
    FIND_LIMITS,
    lambda row: row.id,
    Permission.USAGE_READ,
)
ASSIGNED_UNTIL = related(
    "assigned_until",
    AwareDateTime(nullable=True, description="When the assigned plan ends; null if none does."),
    by_id("plan_assignments.find_ends", PlanAssignment.tenant_id, PlanAssignment.until),
    lambda row: row.id,
    Permission.BILLING_READ,
    column="until",
)
SUSPENSION_REASON = own_column(
    "suspension_reason",
    Str(description="Empty if nobody gave one, and while the tenant is active."),
)
