"""Writes the invitations and SSO connections that follow from the states of a provider's objects."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ARRAY, Text, any_, bindparam, select

from app.core.actors import SYSTEM_IDP
from app.core.db.statements import Statement
from app.identity_sync.merge_state import connection_values
from app.identity_sync.store import MIRRORED, Key, Kind, Objects
from app.sso_connections import service as sso_connections
from app.tenants.models import Tenant

FIND_TENANTS = Statement(
    "tenants.find_by_organizations",
    select(Tenant.idp_org_id, Tenant.id).where(
        Tenant.idp_org_id == any_(bindparam("organization_ids", type_=ARRAY(Text)))
    ),
)


def write_mirrored(objects: Objects, *, roles: Mapping[str, str]) -> set[Key]:
    """Write the rows of the loaded objects; returns those that wait for their organization."""
    organizations = {
        key: state.get("organization_id")
        for key, state in objects.now.items()
        if key.kind in MIRRORED
    }
    if not organizations:
        return set()
    named = [each for each in organizations.values() if each]
    tenants = dict(FIND_TENANTS.all(organization_ids=named))
    for key, organization_id in organizations.items():
        tenant_id = tenants.get(organization_id)
        objects.set_waiting(key, organization_id is not None and tenant_id is None)
        if tenant_id is not None and key.kind is Kind.SSO_CONNECTION:
            sso_connections.mirror(
                tenant_id,
                objects.source,
                key.object_id,
                connection_values(objects.now[key]),
                actor=SYSTEM_IDP,
            )
    return {key for key, id_ in organizations.items() if id_ and id_ not in tenants}
