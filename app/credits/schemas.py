"""Requests and answers of /v1/credits."""

from __future__ import annotations

from enum import StrEnum

from app.auth.tenant_choice import TenantChoiceSchema
from app.core.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import AwareDateTime, Choice, Int, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema
from app.credits.service import LOTS_SHOWN
from app.plans import flag_types

MAX_AMOUNT = flag_types.MAX_LIMIT
MAX_NAME = 255
MAX_REASON = 500
MAX_PRIORITY = 1_000_000


class CreditSource(StrEnum):
    """Where credits come from; only the plan itself grants its own."""

    PURCHASE = "purchase"
    PROMOTION = "promotion"
    REFUND = "refund"


class CreditEntryKind(StrEnum):
    """What an entry of the ledger says."""

    GRANT = "grant"
    CONSUME = "consume"
    HOLD = "hold"
    RELEASE = "release"
    EXPIRE = "expire"
    REVOKE = "revoke"


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "feature": "ai-credits",
        "amount": 1000,
        "source": "purchase",
        "granted": 1000,
        "remaining": 700,
        "balance": 700,
        "held": 0,
        "spent": 300,
        "revoked": 700,
        "priority": 100,
        "starts_at": "2026-01-31T12:00:00Z",
        "expires_at": "2027-01-31T12:00:00Z",
        "next_grant_at": "2026-02-01T00:00:00Z",
        "reference": "invoice-42",
        "reason": "The invoice was refunded.",
        "number": 4711,
        "kind": "consume",
        "hold_id": None,
    }
    descriptions = {
        "feature": "The key of a limit of the kind `credits`.",
        "source": "Where the credits come from.",
        "granted": "What was granted.",
        "remaining": "What is left of the lot.",
        "priority": "The lot with the lowest is used first; then the one that ends first.",
        "starts_at": "When the lot can be used.",
        "expires_at": "When what is left of the lot is lost; null: never.",
        "reference": "The caller's own text, such as the number of an invoice.",
    }


class CreditGrantSchema(Documented):
    """Credits to grant."""

    feature = Str(required=True)
    amount = Int(required=True, ge=1, le=MAX_AMOUNT, description="How much is granted.")
    source = Choice(CreditSource, required=True)
    priority = Int(ge=0, le=MAX_PRIORITY, load_default=100)
    starts_at = AwareDateTime(description="When the lot can be used; by default now.")
    expires_at = AwareDateTime()
    reference = Str(min_length=1, max_length=MAX_NAME)
    tenant_id = Str(
        min_length=1,
        max_length=MAX_NAME,
        description="The tenant: its id, `idp_org_id` or slug. Without it, the tenant of the "
        "token's organization.",
    )


class CreditLotSchema(Documented, AnswerSchema):
    """Credits that were granted together."""

    id = Uuid()
    feature = Str()
    source = Str(metadata={"enum": ["plan", *CreditSource]})
    granted = Int()
    remaining = Int()
    priority = Int()
    starts_at = AwareDateTime()
    expires_at = AwareDateTime(nullable=True)
    reference = Str(nullable=True)
    created_at = AwareDateTime()


class CreditGrantQuerySchema(TenantChoiceSchema, PageQuerySchema):
    """The tenant, and which of its lots are listed."""

    feature = Str(description="Only of this feature.", metadata={"examples": ["ai-credits"]})


class CreditRevokeSchema(Documented):
    """What is taken back."""

    amount = Int(ge=1, le=MAX_AMOUNT, description="By default all that is left of the lot.")
    reason = Str(
        required=True, min_length=1, max_length=MAX_REASON, description="The ledger shows it."
    )


class CreditRevocationSchema(CreditLotSchema):
    """A lot after a revocation."""

    revoked = Int(description="What was taken back: at most what was left of the lot.")
    spent = Int(description="What had been used of the lot; it stays used.")


class CreditBalanceSchema(Documented, AnswerSchema):
    """The credits that a tenant can use for a feature."""

    has_pages = False

    feature = Str()
    balance = Int(nullable=True, description="What can be used; null: unlimited.")
    held = Int(nullable=True, description="What open holds have taken; null with `at`.")
    lots = ListOf(
        Nested(CreditLotSchema),
        description=f"The lots that have credits, in the order of their use; at most {LOTS_SHOWN}.",
    )
    next_grant_at = AwareDateTime(
        nullable=True, description="When the plan grants again; null: never, and with `at`."
    )


class CreditBalanceQuerySchema(Documented, TenantChoiceSchema):
    """The tenant, and which balances are listed."""

    feature = Str(description="Only of this feature.")
    at = AwareDateTime(description="As of this time in the past; by default now.")


class CreditEntrySchema(Documented, AnswerSchema):
    """A change of a lot, which is never changed itself."""

    number = Int(description="Grows with each entry.")
    at = AwareDateTime(description="When it happened.")
    feature = Str()
    lot_id = Uuid(description="The lot.")
    kind = Choice(CreditEntryKind, description="What happened.")
    amount = Int(description="What was added; negative: taken.")
    remaining = Int(description="What the lot has after it.")
    balance = Int(description="What all lots have after it, also those that start later.")
    hold_id = Uuid(nullable=True, description="The hold that has taken or returned it.")
    reason = Str(nullable=True, description="Why it was revoked.")


class CreditEntryQuerySchema(Documented, TenantChoiceSchema):
    """The tenant, and which entries are listed."""

    feature = Str(description="Only of this feature.")
    limit = Int(
        ge=1, le=MAX_LIMIT, load_default=DEFAULT_LIMIT, description="The most rows of a page."
    )
    cursor = Str(
        pattern="^[0-9]{1,18}$",
        description="`next_cursor` of the page before.",
        metadata={"examples": ["4711"]},
    )
