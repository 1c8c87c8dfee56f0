"""What goes in and out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, EmailStr, Field

T = TypeVar("T")
Role = Literal["owner", "admin", "billing", "member", "viewer"]


class Answer(BaseModel, Generic[T]):
    data: T


class Page(BaseModel, Generic[T]):
    data: list[T]
    next_cursor: str | None


class Read(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class UserRead(Read):
    id: UUID
    tenant_id: UUID
    idp_org_id: str
    created_at: datetime
    created_by_user_id: str
    updated_at: datetime
    updated_by_user_id: str
    idp_user_id: str
    email: str
    first_name: str
    last_name: str
    is_active: bool
    meta_data: dict[str, Any]


class UserMetaDataPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    patches: dict[str, Any]


class MembershipRead(Read):
    id: UUID
    tenant_id: UUID
    idp_org_id: str
    created_at: datetime
    created_by_user_id: str
    updated_at: datetime
    updated_by_user_id: str
    user_id: UUID
    idp_membership_id: str
    role: str
    is_active: bool


class SubscriptionRead(Read):
    id: UUID
    created_at: datetime
    updated_at: datetime
    bp_subscription_id: str
    bp_customer_id: str
    bp_plan_id: str
    bp_status: str
    plan_name: str
    is_free_trial: bool
    start_date: datetime
    auto_renew: bool
    billing_cycle: str
    per_cycle_billing_amount: int
    billing_address_line_1: str
    billing_city: str
    billing_state: str
    billing_zip: str
    billing_country: str
    billing_email: str
    billing_phone: str
    billing_contact_name: str
    send_invoice_days_before_due: int
    send_email_receipts: bool
    send_paper_receipts: bool


Text = Annotated[str, Field(max_length=255)]


class SubscriptionUpdate(BaseModel):
    """What a tenant's own credential may change."""

    model_config = ConfigDict(extra="forbid")

    auto_renew: bool = True
    billing_address_line_1: Text = ""
    billing_city: Text = ""
    billing_state: Text = ""
    billing_zip: Text = ""
    billing_country: Text = ""
    billing_email: EmailStr = ""
    billing_phone: Text = ""
    billing_contact_name: Text = ""
    send_invoice_days_before_due: Annotated[int, Field(ge=0, le=365)] = 0
    send_email_receipts: bool = True
    send_paper_receipts: bool = False


class Evaluation(BaseModel):
    context: dict[str, Any] = {}


class EvaluatedFlag(BaseModel):
    key: str
    reason: str
    variant: str
    metadata: dict[str, str]
    value: Any


class EvaluatedFlags(BaseModel):
    flags: list[EvaluatedFlag]
