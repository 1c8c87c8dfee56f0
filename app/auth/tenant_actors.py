"""Recognises in an actor's id the credentials of tenants."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_

from app.auth.models import ApiKey


def is_of_tenant(actor: Any) -> ColumnElement[bool]:
    """The condition that the actor in a column is a tenant's: a user, a key or a directory."""
    key = exists().where(func.concat("key:", ApiKey.id) == actor, ApiKey.tenant_id.is_not(None))
    return or_(actor.not_like("%:%"), actor.like("scim:%"), actor.like("key:%") & key)
