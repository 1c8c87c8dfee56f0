"""Search: one box for tenants, users, subscriptions and e-mail messages."""

from __future__ import annotations

from typing import Any

from flask import render_template, request, url_for

from app.console.access import signed_in
from app.console.api import call, succeeded
from app.console.blueprint import console

LIMIT = 20
SHORTEST = 2  # characters


@console.get("")
@signed_in
def search() -> str:
    """Show what begins with the words of ``q``."""
    query = request.args.get("q", "").strip()
    is_long_enough = len(query) >= SHORTEST
    answer = (
        call("GET", "/v1/search", query={"q": query, "limit": LIMIT}) if is_long_enough else None
    )
    problem = ""
    found: list[Any] = []
    if answer is not None:
        if answer.status == 422:
            problem = " ".join(entry["msg"] for entry in answer.entries)
        else:
            found = [{**each, "url": _url(each)} for each in succeeded(answer).data]
    return render_template(
        "console/search.html",
        title="Search",
        query=query,
        found=found,
        is_too_short=bool(query) and not is_long_enough,
        problem=problem,
        is_search_page=True,
    )


def _url(found: Any) -> str:
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
