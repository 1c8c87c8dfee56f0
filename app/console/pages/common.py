"""What pages of several subjects share."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.console import api

RECENT = 10
JSON_TYPES = {"integer": "integer", "number": "number", "boolean": "boolean"}


def get_tenant(tenant_id: UUID | None) -> Any:
    """The tenant whose page this is; None for the platform's pages. Raises Refused."""
    return None if tenant_id is None else api.get(f"/v1/tenants/{tenant_id}").data


def recent_history(path: str) -> Any:
    """The last changes of a row, newest first; None where the person may not read them."""
    found = api.find(f"{path}/history", limit=RECENT, order="-created_at")
    return None if found is None else found.data
