"""Requests and answers of /v1/tenants/{tenant_id}/plan."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, Bool, Choice, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import Schema
from app.plans.decision import MAX_SUBSCRIPTIONS, PlanSource


class Documented(Schema):
    """What the fields of all schemas here are, and an example of each."""

    examples = {
        "bp_subscription_id": "sub_1PqR",
        "bp_status": "active",
        "plan_name": "growth",
        "reason": "too expensive",
        "source": "subscription",
        "because": "Of the subscriptions that have not ended, it has the latest start date and id.",
    }
    descriptions = {
        "bp_subscription_id": "The billing provider's id of the subscription.",
        "bp_status": "The billing provider's word, verbatim.",
        "start_date": "When the subscription began (UTC).",
        "subscription_id": "The subscription that gives it; null for every other source.",
        "status_class": "The class of `bp_status`.",
        "source": "What gives the plan.",
        "decides": "Whether it decides the plan; true for one of the candidates.",
        "because": "Why that decides the plan, in one sentence.",
    }


class PlanCandidateSchema(Documented):
    """One plan that the tenant could have."""

    source = Choice(PlanSource, required=True)
    plan_name = Str(required=True, description="The plan that it gives.")
    decides = Bool(required=True)
    because = Str(required=True, description="Why it decides the plan, or why it does not.")
    subscription_id = Uuid(required=True, nullable=True)
    bp_subscription_id = Str(required=True)
    bp_status = Str(required=True)
    status_class = Str(required=True)
    start_date = AwareDateTime(required=True, nullable=True)
    until = AwareDateTime(required=True, nullable=True, description="When an assigned plan ends.")
    reason = Str(required=True, description="Why the plan was assigned.")


class PlanDecisionSchema(Documented):
    """The plan of a tenant, and what decides it."""

    tenant_id = Uuid(required=True, description="The tenant.")
    plan_name = Str(required=True, description="The plan that the tenant has.")
    source = Choice(PlanSource, required=True)
    subscription_id = Uuid(
        required=True, nullable=True, description="The subscription that decides."
    )
    until = AwareDateTime(
        required=True,
        nullable=True,
        description="When the assigned plan ends that decides, or null.",
    )
    because = Str(required=True)
    candidates = ListOf(
        Nested(PlanCandidateSchema),
        required=True,
        description="In order of precedence: the assigned plan, the subscriptions that have "
        "not ended, the plan that the tenant keeps while the first of them names a plan without "
        "a preset, the default plan; then the subscriptions that have ended; at most "
        f"{MAX_SUBSCRIPTIONS} subscriptions.",
    )


class PlanAssignmentSchema(Schema):
    """The plan to assign."""

    examples = {
        **Documented.examples,
        "until": None,
        "reason": "Pilot until the contract is signed.",
    }

    plan_name = Str(
        required=True, min_length=1, max_length=255, description="The name of a plan preset."
    )
    until = AwareDateTime(
        required=True,
        nullable=True,
        description="When the plan ends, in the future. Null: when it is deleted.",
    )
    reason = Str(
        max_length=500,
        description="Such as pilot, comped or internal; the explanation shows it. Without it "
        "an assigned plan keeps its reason.",
    )


class TrialSchema(PlanAssignmentSchema):
    """An assigned plan that ends, as its events show it."""

    examples = {
        **PlanAssignmentSchema.examples,
        "until": "2026-03-01T00:00:00Z",
        "next_plan_name": "free",
    }

    until = AwareDateTime(required=True, description="When the plan ends (UTC).")
    reason = Str(required=True, description="Why the plan was assigned.")
    next_plan_name = Str(required=True, description="The plan that the tenant has afterwards.")
