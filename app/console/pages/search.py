"""Search, where people start: one box for all kinds of rows, and what is new until they type."""

from __future__ import annotations

from flask import request, url_for

from app.auth.permissions import Permission
from app.console.access import current_session
from app.console.api import call, get, get_tenant, succeeded
from app.console.blueprint import Shown, page, render
from app.console.pages.common import RECENT
from app.core.json_text import Json

LIMIT = 20
SHORTEST = 2  # characters


@page("")
def search() -> Shown:
    """Show what begins with the words of ``q``; without it, what is new."""
    query = request.args.get("q", "").strip()
    is_too_short = bool(query) and len(query) < SHORTEST
    problem = ""
    found: list[Json] = []
    if query and not is_too_short:
        answer = call("GET", "/v1/search", query={"q": query, "limit": LIMIT})
        if answer.status == 422:
            problem = " ".join(entry["msg"] for entry in answer.entries)
        else:
            found = [{**each, "url": _url(each)} for each in succeeded(answer).data]
    return render(
        "search",
        "Search",
        query=query,
        found=found,
        is_too_short=is_too_short,
        problem=problem,
        is_search_page=True,
        **({} if query else _newest()),
    )


def _newest() -> dict[str, Json]:
    """What is new, in two or three short calls of the API.

    What the checks of the installation find takes longer, and is on the page of operations.
    """
    session, query = current_session(), {"order": "-created_at", "limit": RECENT}
    tenant_id = session.tenant_id
    if tenant_id is None:
        return {
            "tenants": get("/v1/tenants", **query).data,
            "changes": get("/v1/audit-events", include="tenant,actor_name", **query).data,
        }
    found = {
        "tenant": get_tenant(tenant_id).data,
        "members": get("/v1/memberships/tenant", include="user", **query).data,
    }
    if session.can(Permission.AUDIT_READ):
        found["changes"] = get("/v1/audit-events", include="actor_name", **query).data
    return found


def _url(found: Json) -> str:
    """The page of a result; an empty text for one without a page."""
    tenant_id = (found["tenant"] or {}).get("id")
    match found["type"]:
        case "tenant":
            return url_for("console.show_tenant", tenant_id=found["id"])
        case "user":
            return url_for("console.show_user", tenant_id=tenant_id, user_id=found["id"])
        case "subscription":
            return url_for(
                "console.show_subscription", tenant_id=tenant_id, subscription_id=found["id"]
            )
    return ""
