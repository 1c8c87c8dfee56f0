"""Recognises actors that are credentials of tenants."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Uuid, case, cast, exists, func, or_

from app.auth.models import ApiKey

KEY = "^key:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def is_of_tenant(actor: Any) -> ColumnElement[bool]:
    """A condition: the actor in a column is a tenant's user or credential, or a setup link."""
    key_id = cast(func.substr(actor, len("key:") + 1), Uuid)
    is_tenants_key = exists().where(ApiKey.id == key_id, ApiKey.tenant_id.is_not(None))
    # CASE, because the cast to UUID fails for other actors.
    return case(
        (actor.regexp_match(KEY), is_tenants_key),
        else_=or_(
            actor.not_like("%:%"), actor.startswith("scim:"), actor.startswith("setup_link:")
        ),
    )
