"""Subscriptions and flags."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Response
from sqlalchemy import func, or_, select

from benchmarks.peer.access import Caller, Session, caller_with, find, record
from benchmarks.peer.models import FeatureOverride, PlanPreset, Subscription, Tenant
from benchmarks.peer.schemas import (
    Answer,
    EvaluatedFlag,
    EvaluatedFlags,
    Evaluation,
    SubscriptionRead,
    SubscriptionUpdate,
)

router = APIRouter()
BillingWriter = Annotated[Caller, Depends(caller_with("billing:write"))]
FlagReader = Annotated[Caller, Depends(caller_with("flags:read"))]


@router.patch("/v1/billing/subscriptions/{subscription_id}")
async def patch_subscription(
    subscription_id: UUID,
    body: SubscriptionUpdate,
    session: Session,
    caller: BillingWriter,
    response: Response,
) -> Answer[SubscriptionRead]:
    subscription = await find(session, Subscription, caller, subscription_id, lock=True)
    sent = body.model_dump(exclude_unset=True)
    after = {name: value for name, value in sent.items() if getattr(subscription, name) != value}
    before = {name: getattr(subscription, name) for name in after}
    if after:
        record(session, "subscription.updated", subscription, before, after, caller)
        await session.commit()
    response.headers["ETag"] = f'"{subscription.version}"'
    return Answer(data=SubscriptionRead.model_validate(subscription))


@router.post("/ofrep/v1/evaluate/flags")
async def evaluate_flags(
    body: Evaluation, session: Session, caller: FlagReader, response: Response
) -> EvaluatedFlags:
    tenant, preset = (
        await session.execute(
            select(Tenant, PlanPreset)
            .outerjoin_from(Tenant, PlanPreset, PlanPreset.name == Tenant.plan_name)
            .where(Tenant.id == caller.tenant_id)
        )
    ).one()
    overrides = await session.scalars(
        select(FeatureOverride).where(
            FeatureOverride.tenant_id == caller.tenant_id,
            FeatureOverride.plan_preset_id == preset.id,
            or_(FeatureOverride.expires_at.is_(None), FeatureOverride.expires_at > func.now()),
        )
    )
    own = {one.flag_key: one.flag_value for one in overrides} if tenant.is_active else {}
    answer = EvaluatedFlags(flags=[_evaluated(flag, own, tenant) for flag in preset.flags])
    response.headers["ETag"] = f'"{hashlib.md5(answer.model_dump_json().encode()).hexdigest()}"'
    return answer


def _evaluated(flag: dict[str, Any], own: dict[str, Any], tenant: Tenant) -> EvaluatedFlag:
    key = flag["flag_key"]
    is_own = key in own
    return EvaluatedFlag(
        key=key,
        reason="TARGETING_MATCH" if is_own else "STATIC" if tenant.is_active else "DISABLED",
        variant="override" if is_own else "preset",
        metadata={"plan": tenant.plan_name},
        value=own[key] if is_own else flag["default_value"],
    )
