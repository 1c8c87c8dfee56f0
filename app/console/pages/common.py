"""What pages of several subjects share."""

from __future__ import annotations

from uuid import UUID

from app.console import api
from app.console.blueprint import Shown, render
from app.core.json_text import Json

RECENT = 10


def slug_of(tenant_id: UUID) -> str:
    """What confirms a dangerous change of the tenant."""
    slug: str = api.get_tenant(tenant_id).data["slug"]
    return slug


def recent_history(path: str) -> Json:
    """The last changes of a row, newest first; None where the person may not read them."""
    found = api.find(f"{path}/history", limit=RECENT, order="-created_at")
    return None if found is None else found.data


def secret_page(
    title: str, answer: api.Answer, *, name: str, back: str, key: str = "secret", **values: object
) -> Shown:
    """The page with a new secret, which is ``key`` of the answer; ``name`` is the key of its name."""
    data = answer.data
    page = render("secret", title, secret=data.get(key), name=data[name], back=back, **values)
    return page, answer.status
