"""Requests and answers of /v1/sso-connections."""

from __future__ import annotations

from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Choice, ListOf, Str, Uuid
from app.core.validation.schemas import RowSchema
from app.sso_connections.models import SsoState


class SsoConnectionSchema(RowSchema):
    """A connection to a company's own sign-in, as the identity provider has it."""

    examples = {
        "source": "workos",
        "idp_connection_id": "conn_01JZ4K",
        "name": "Acme's Okta",
        "provider": "Okta",
        "type": "saml",
        "state": "active",
        "domains": ["acme.example"],
        "certificate_ends_at": "2027-01-31T12:00:00Z",
    }

    tenant_id = Uuid()
    source = Str(description="The identity provider that has reported the connection.")
    idp_connection_id = Str(description="The identity provider's id of the connection.")
    name = Str(description="The name that the identity provider shows.")
    provider = Str(description="Who signs people in, in the identity provider's words.")
    type = Str(description="The protocol, such as `saml` or `oidc`; empty if it is not known.")
    state = Choice(SsoState, description="People sign in by an `active` connection only.")
    domains = ListOf(Str(), description="The domains of the people's addresses.")
    certificate_ends_at = AwareDateTime(
        nullable=True,
        description="When the first of its certificates ends (UTC); null if it is not known.",
    )


class SsoConnectionQuerySchema(PageQuerySchema):
    """Filters of the list of SSO connections."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    state = Choice(SsoState, description="Only connections in this state.")
    certificate_ends_before = AwareDateTime(
        description="Only connections with a certificate that ends before this time."
    )
