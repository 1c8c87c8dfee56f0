"""Requests and answers of /v1/usage/holds and /v1/usage/leases."""

from __future__ import annotations

from app.auth.tenant_choice import TenantChoiceSchema
from app.core.http.pagination import NEWEST_FIRST, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema
from app.usage.models import HoldKind, HoldState
from app.usage.schemas import MAX_AMOUNT, MAX_KEY, TENANT

MAX_TTL = 24 * 3600
MAX_LEASE_TTL = 300


class UsageHoldSchema(AnswerSchema):
    """An amount of a limit that is held until it is settled or expires."""

    examples = {
        "id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "feature": "api-calls",
        "kind": "hold",
        "amount": 100,
        "state": "settled",
        "counted": 80,
        "over_by": 0,
        "is_late": False,
        "reference": "order-42",
        "created_at": "2026-01-31T12:00:00Z",
        "expires_at": "2026-01-31T12:05:00Z",
        "ended_at": "2026-01-31T12:01:00Z",
        "remaining": 719,
    }

    id = Uuid()
    feature = Str(description="The key of a limit.")
    kind = Choice(HoldKind, description="Whether it is settled once, or reported again and again.")
    amount = Int(description="What was held. Of a lease: what is left of it.")
    state = Choice(HoldState, description="`expired`: it can be settled for 24 hours.")
    counted = Int(description="What was counted of it.")
    over_by = Int(description="What was used beyond it and did not fit into the limit.")
    is_late = Bool(description="Whether it was settled after it had expired.")
    reference = Str(nullable=True, description="What the caller gave.")
    created_at = AwareDateTime()
    expires_at = AwareDateTime(description="From then on it holds nothing.")
    ended_at = AwareDateTime(nullable=True, description="When it ended; null while it is open.")
    remaining = Int(
        nullable=True,
        description="What was free of the limit after the hold's last change. Null: unlimited.",
    )


class HoldRequestSchema(Schema):
    """What requests have in common."""

    examples = {**UsageHoldSchema.examples, "ttl_seconds": 60, "idempotency_key": "order-42"}


class UsageHoldCreateSchema(HoldRequestSchema):
    """An amount to hold."""

    feature = Str(required=True, description="The key of a limit of the plan.")
    amount = Int(required=True, ge=1, le=MAX_AMOUNT, description="How much to hold.")
    ttl_seconds = Int(
        ge=1, le=MAX_TTL, load_default=300, description="The seconds until it expires."
    )
    idempotency_key = Str(
        min_length=1,
        max_length=MAX_KEY,
        description="The same key of a feature makes one hold in 24 hours.",
    )
    reference = Str(min_length=1, max_length=MAX_KEY, description="What the hold is for.")
    tenant_id = TENANT


class UsageHoldSettleSchema(HoldRequestSchema):
    """What was used of a hold."""

    amount = Int(required=True, ge=0, le=MAX_AMOUNT, description="How much to count.")


class UsageHoldExtendSchema(HoldRequestSchema):
    """When a hold expires."""

    ttl_seconds = Int(required=True, ge=1, le=MAX_TTL, description="The seconds from now.")


class UsageLeaseCreateSchema(HoldRequestSchema):
    """An amount to lend."""

    feature = Str(required=True, description="The key of a hard limit of the plan.")
    amount = Int(
        required=True, ge=1, le=MAX_AMOUNT, description="How much to lend; less if less is free."
    )
    ttl_seconds = Int(
        ge=5, le=MAX_LEASE_TTL, load_default=60, description="The seconds until it expires."
    )
    tenant_id = TENANT


class UsageLeaseRenewSchema(HoldRequestSchema):
    """What is used of a lease, and what it holds from now on."""

    used = Int(
        required=True,
        ge=0,
        le=MAX_AMOUNT,
        description="All that was used under the lease so far; never less than before.",
    )
    amount = Int(
        ge=0,
        le=MAX_AMOUNT,
        description="What the lease holds from now on, unused, or what is free of it. 0 ends the "
        "lease. Without it, the lease keeps what is left.",
    )
    ttl_seconds = Int(
        ge=5,
        le=MAX_LEASE_TTL,
        description="The seconds from now until it expires; by default those it was made with.",
    )


class UsageHoldQuerySchema(PageQuerySchema, TenantChoiceSchema):
    """The query of the list of holds and leases, which is newest first by default."""

    examples = UsageHoldSchema.examples

    feature = Str(description="Only of this limit.")
    state = Choice(HoldState, description="Only in this state.")
    order = NEWEST_FIRST
