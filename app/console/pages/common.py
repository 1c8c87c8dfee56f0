"""What pages of several subjects share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from app.console import api
from app.console.blueprint import Shown, render
from app.core.clock import utcnow
from app.core.json_text import Json

RECENT = 10
PROVIDERS = {
    "stripe": "Stripe",
    "paddle": "Paddle",
    "chargebee": "Chargebee",
    "lemonsqueezy": "Lemon Squeezy",
    "polar": "Polar",
}
SOON = timedelta(seconds=20)


def slug_of(tenant_id: UUID) -> str:
    """What confirms a dangerous change of the tenant."""
    slug: str = api.get_tenant(tenant_id).data["slug"]
    return slug


def name_of(tenant_id: UUID) -> str:
    name: str = api.get_tenant(tenant_id).data["name"]
    return name


def person_name(user: Json) -> str:
    name = f"{user['first_name']} {user['last_name']}".strip()
    return name or user["email"] or "User"


def recent_changes(*, tenants: bool = False, **filters: object) -> Json:
    """The last changes that the filters choose, newest first; None where they may not be read.

    With ``tenants`` each has its tenant.
    """
    names = f"actor_name,target_name{',tenant' if tenants else ''}"
    query = {"include": names, "limit": RECENT, "order": "-created_at"}
    found = api.find("/v1/audit-events", **query, **filters)
    return None if found is None else found.data


def recent_history(path: str) -> Json:
    """The last changes of the row at ``path``, as :func:`recent_changes`."""
    return recent_changes(target_id=path.rpartition("/")[2])


def are_underway(rows: Iterable[Json]) -> bool:
    """Whether one of the rows is being sent or applied now, so that the page follows it."""
    latest = utcnow() + SOON
    dues = [one["next_attempt_at"] for one in rows if one["status"] in ("pending", "sending")]
    return any(due and datetime.fromisoformat(due) < latest for due in dues)


def secret_page(
    title: str, answer: api.Answer, *, name: str, back: str, key: str = "secret", **values: object
) -> Shown:
    """The page with a new secret, which is ``key`` of the answer; ``name`` is the key of its name."""
    data = answer.data
    page = render("secret", title, secret=data.get(key), name=data[name], back=back, **values)
    return page, answer.status
