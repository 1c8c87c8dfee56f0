"""``?tenant_id=``: the tenant that a platform credential's request is for."""

from __future__ import annotations

from uuid import UUID

from app.auth.guard import current_principal, home_tenant_id
from app.core.db.queries import visible_id
from app.core.errors import Invalid, error
from app.core.validation.fields import Uuid
from app.core.validation.schemas import Schema


class TenantChoiceSchema(Schema):
    """The tenant of a platform credential's request; a tenant's credential has its own."""

    tenant_id = Uuid(
        description="The tenant, for platform credentials. Without it, the tenant of the "
        "token's organization; 422 `missing` if no tenant has it."
    )


class TenantOrOwnSchema(Schema):
    """The tenant of the request."""

    tenant_id = Uuid(load_default=None, description="The tenant; by default the credential's own.")


class OwnerChoiceSchema(Schema):
    """The owner of a new row."""

    tenant_id = Uuid(
        description="The tenant, for platform credentials. Without it the row belongs to the tenant"
        " of the token's organization (422 `missing` if no tenant has it), or to the platform if the"
        " credential names no organization."
    )


def target_id(tenant_id: UUID | None = None, *, source: str = "query") -> UUID:
    """``tenant_id`` or, if that is None, the credential's tenant. The tenant may not exist.

    Raises Invalid (``missing`` at ``[source, "tenant_id"]``) if both are None. Raises NotFound if
    the scope is another tenant's.
    """
    chosen = tenant_id or home_tenant_id()
    if chosen is None:
        raise Invalid(error([source, "tenant_id"], "missing", "Field required"))
    return visible_id(chosen)


def owner_id(tenant_id: UUID | None) -> UUID | None:
    """The owner of a new row: ``tenant_id`` or the credential's tenant; None for the platform.

    Raises Invalid if the token's organization is not a tenant.
    """
    if tenant_id is None and current_principal().names_organization:
        return target_id()
    return tenant_id
