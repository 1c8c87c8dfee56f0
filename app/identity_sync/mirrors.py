"""Writes the invitations and SSO connections that follow from the states of a provider's objects."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from app.core.db import queries
from app.identity_sync.merge_state import connection_values, invitation_values
from app.identity_sync.store import MIRRORED, Key, Kind, Objects
from app.invitations import service as invitations
from app.sso_connections import service as sso_connections
from app.tenants.models import Tenant
from app.users.models import User


def write_mirrored(objects: Objects, *, roles: Mapping[str, str], force: bool = False) -> set[Key]:
    """Write the loaded objects that have changed or have waited, with ``force`` all.

    Returns those whose organization has no tenant; they wait for it. An accepted invitation waits
    for its user.
    """
    homeless = set()
    for key, state in objects.now.items():
        is_new = force or key in objects.changed or key in objects.waiting
        if key.kind not in MIRRORED or not is_new:
            continue
        organization_id = state.get("organization_id")
        tenant = organization_id and queries.find_row(Tenant, idp_org_id=organization_id)
        if organization_id and tenant is None:
            homeless.add(key)
        is_written = tenant is not None and _write(objects, key, tenant.id, roles)
        objects.set_waiting(key, organization_id is not None and not is_written)
    return homeless


def _write(objects: Objects, key: Key, tenant_id: UUID, roles: Mapping[str, str]) -> bool:
    """Write an object's row; False while the user who has accepted an invitation has none."""
    state, place = objects.now[key], (tenant_id, objects.source, key.object_id)
    if key.kind is Kind.SSO_CONNECTION:
        sso_connections.mirror(*place, connection_values(state))
        return True
    values = invitation_values(state, roles)
    if values is None:
        return True
    subject = values["accepted_at"] and state.get("accepted_user_id")
    user = subject and queries.find_row(User, tenant_id=tenant_id, idp_user_id=subject)
    if user:
        values["user_id"] = user.id
    invitations.apply_from_provider(*place, values)
    return not subject or user is not None
