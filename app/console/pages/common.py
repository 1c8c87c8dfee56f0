"""Shared by pages of several subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from flask import redirect, request

from app.console import api
from app.console.blueprint import Shown, render
from app.console.fields import Field, Sent
from app.console.forms import Form
from app.console.lists import ID
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


@dataclass(frozen=True)
class RowName(Field):
    """A row by its id, or by a name, slug or address; of the page's tenant, if any."""

    of: str = "tenant"  # its type

    def read(self, form: Sent) -> Json:
        text = form.get(self.name, "").strip()
        if ID.fullmatch(text):
            return text
        tenant_id = (request.view_args or {}).get("tenant_id")
        query = {"q": text, "types": self.of, "tenant_id": tenant_id}
        answer = api.call("GET", "/v1/search", query=query)
        found = answer.data if answer.is_ok else []
        exact = [one for one in found if text in (one["title"], one["subtitle"])]
        chosen = exact if len(exact) == 1 else found
        if len(chosen) == 1:
            return chosen[0]["id"]
        names = ", ".join(f"{one['title']} ({one['subtitle']})" for one in found)
        raise ValueError(f"Which of these? {names}" if names else f"No {self.of} has this name.")


class MemberName(RowName):
    """A membership of the page's tenant, by the person's name, address or id; None if empty."""

    def read(self, form: Sent) -> Json:
        if not form.get(self.name, "").strip():
            return None
        query = {"user_id": super().read(form), **(request.view_args or {})}
        if found := api.get("/v1/memberships/tenant", **query).data:
            return found[0]["id"]
        raise ValueError("This person is not a member.")


TENANT = RowName("tenant_id", "Tenant", help="Its name, slug or id.", is_required=True)


def choose(title: str, field: Field, page_of: Callable[[Json], str], *, back: str = "") -> Shown:
    """Ask for the value of a field, and lead to its page."""
    form = Form(
        title, (field,), submit="Continue", template="choose", values=request.args, back=back
    )
    try:
        if field.name in request.args:
            return redirect(page_of(field.read(request.args)), 303)
    except ValueError as fault:
        form.errors = {field.name: [str(fault)]}
    return form.page(422 if form.errors else 200)


def tenant_slug() -> str:
    """The slug that confirms a dangerous change of the page's tenant."""
    slug: str = api.get_tenant((request.view_args or {})["tenant_id"]).data["slug"]
    return slug


def name_of(tenant_id: UUID) -> str:
    name: str = api.get_tenant(tenant_id).data["name"]
    return name


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


def is_followed() -> bool:
    """Whether a page that follows something asks, and nobody has opened it."""
    return "asked" in request.args


def secret_page(
    title: str, answer: api.Answer, *, name: str, back: str, key: str = "secret", **values: object
) -> Shown:
    """The page with a new secret, which is ``key`` of the answer; ``name`` is the key of its name.

    ``what`` among ``values`` is what the secret is, such as a link.
    """
    data = answer.data
    page = render("secret", title, secret=data.get(key), name=data[name], back=back, **values)
    return page, answer.status
