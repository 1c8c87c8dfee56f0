"""What pages of several subjects share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import current_session
from app.console.forms import Field, Form

RECENT = 10


def get_tenant(tenant_id: UUID | None) -> Any:
    """The tenant whose page this is; None for the platform's pages. Raises Refused."""
    return None if tenant_id is None else api.get(f"/v1/tenants/{tenant_id}").data


def get_row(tenant_id: UUID, path: str, **query: Any) -> api.Answer:
    """A row of the tenant whose page this is.

    Raises NotFound for a row of another tenant, which platform superadmins can read, and Refused.
    """
    if current_session().is_platform:
        owner = api.get(path, include="tenant").data["tenant"]
        if owner is None or owner["id"] != str(tenant_id):
            raise NotFound
    return api.get(path, **query)


def row_form(title: str, tenant_id: UUID, path: str, *, back: str, **options: Any) -> Form:
    """A form about a row of the tenant, with its values and its version."""
    found = get_row(tenant_id, path)
    given = {"values": found.data, "context": {"tenant": get_tenant(tenant_id)}, **options}
    return Form(title, version=found.etag, back=back, **given)


def recent_history(path: str) -> Any:
    """The last changes of a row, newest first; None where the person may not read them."""
    found = api.find(f"{path}/history", limit=RECENT, order="-created_at")
    return None if found is None else found.data


def edit(path: str, title: str, fields: Sequence[Field], *, done: str, **options: Any) -> Any:
    """A form of a row's fields, which changes the row; ``options`` are those of the form."""
    found = api.get(path)
    form = Form(title, fields, values=found.data, version=found.etag, **options)
    return form.run(
        lambda values, version: api.call("PATCH", path, body=values, if_match=version),
        done=done,
        to=form.back,
        changed_only=True,
    )


def rotate(path: str, title: str, *, show: Callable[[api.Answer], Any], **options: Any) -> Any:
    """A form that replaces a row's secret; ``show`` renders the new one."""
    form = Form(title, submit="Replace", **options)
    return form.run(
        lambda *_: api.call("POST", f"{path}/rotate", body={}), done="", to=form.back, show=show
    )


def delete(path: str, title: str, *, done: str, to: str, **options: Any) -> Any:
    """A form that deletes a row, and then leads to ``to``."""
    found = api.get(path)
    form = Form(title, version=found.etag, submit="Delete", is_dangerous=True, **options)
    return form.run(lambda _, version: api.call("DELETE", path, if_match=version), done=done, to=to)
