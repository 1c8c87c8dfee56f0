"""What pages of several subjects share."""

from __future__ import annotations

from uuid import UUID

from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, render
from app.core.json_text import Json

RECENT = 10


def own(tenant_id: UUID, path: str) -> str:
    """The path of a row of the tenant whose page this is.

    Raises NotFound for a row of another tenant, which platform superadmins can read, and Refused.
    """
    if current_session().is_platform:
        owner = api.get(path, include="tenant").data["tenant"]
        if owner is None or owner["id"] != str(tenant_id):
            raise NotFound
    return path


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
