"""Requests and answers of /v1/billing/customers."""

from __future__ import annotations

from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import Bool, Choice, Str, Uuid
from app.core.validation.schemas import RowSchema, Schema
from app.subscriptions.models import ProviderName


class Documented(Schema):
    """What the fields of all schemas here are, and an example of each."""

    examples = {"customer_id": "cus_9s6X"}
    descriptions = {
        "tenant_id": "The customer's tenant.",
        "provider": "The billing provider.",
        "customer_id": "The provider's id of the customer.",
        "is_manual": "True: it was set here; false: the customer's metadata at the provider says it.",
    }


class BillingCustomerSchema(Documented, RowSchema):
    """The tenant of a customer at a billing provider."""

    tenant_id = Uuid(required=True)
    provider = Choice(ProviderName, required=True)
    customer_id = Str(required=True)
    is_manual = Bool(required=True)


class BillingCustomerSetSchema(Documented):
    """The customer's tenant."""

    tenant_id = Uuid(required=True)


class BillingCustomerQuerySchema(Documented, PageQuerySchema):
    """Filters of the list; a customer has to match all."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    provider = Choice(ProviderName, description="Only customers of this billing provider.")
    customer_id = Str(description="Only the customer with this id.")
