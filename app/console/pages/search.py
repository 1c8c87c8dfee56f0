"""Search, where people start: one box for all kinds of rows, and what is new until they type."""

from __future__ import annotations

from urllib.parse import parse_qsl

from flask import redirect, request, url_for

from app.console.access import current_session
from app.console.api import call, get, succeeded
from app.console.blueprint import Shown, page, render
from app.console.pages.common import RECENT, recent_changes
from app.core.json_text import Json

LIMIT = 20
SHORTEST = 2  # characters
NAMES = ("name", "slug", "first_name", "last_name")  # what is found by them comes first
LABELS = {
    "trials_ending": "Trials that end within 7 days",
    "past_due": "Past-due subscriptions",
    "over_limit": "Tenants at a limit",
    "failing_endpoints": "Failing webhook endpoints",
    "failed_deliveries": "Failed deliveries of 7 days",
    "failing_log_streams": "Failing log streams",
    "invalid_log_streams": "Log streams that need a correction",
    "failed_webhooks": "Failed webhooks of providers",
    "waiting_billing": "Billing events that wait for a tenant",
    "waiting_people": "People who wait for a counterpart",
    "join_requests": "People who want to join",
    "lapsed_domains": "Domains that lapsed",
    "ending_certificates": "SSO certificates that end within 30 days",
    "findings": "Faults of the installation",
}
# A list of the API -> the page that shows it.
PAGES = {
    "/v1/tenants": "list_tenants",
    "/v1/billing/subscriptions": "list_subscriptions",
    "/v1/webhook-endpoints": "list_endpoints",
    "/v1/webhook-deliveries/failed": "list_failed_deliveries",
    "/v1/log-streams": "list_log_streams",
    "/v1/webhooks/events": "list_webhooks",
    "/v1/identity/waiting": "list_waiting",
    "/v1/billing/customers/waiting": "show_billing",
    "/v1/join-requests": "list_join_requests",
    "/v1/domains": "list_domains",
    "/v1/sso-connections": "list_sso_connections",
    "/v1/operations/findings": "show_operations",
}


@page("")
def search() -> Shown:
    """Show what begins with the words of ``q``; without it what is new, or the person's tenant."""
    query, tenant_id = request.args.get("q", "").strip(), current_session().tenant_id
    is_fragment = "HX-Request" in request.headers  # the palette's
    if tenant_id and not query and not is_fragment:
        return redirect(url_for("console.show_tenant", tenant_id=tenant_id), 303)
    is_too_short = bool(query) and len(query) < SHORTEST
    problem = ""
    found: list[Json] = []
    if query and not is_too_short:
        answer = call("GET", "/v1/search", query={"q": query, "limit": LIMIT})
        if answer.status == 422:
            problem = " ".join(entry["msg"] for entry in answer.entries)
        else:
            found = [{**each, "url": _url(each)} for each in succeeded(answer).data]
            found.sort(key=lambda each: each["matched"] not in NAMES)
    return render(
        "results" if is_fragment else "search",
        "Search" if query else "Home",
        query=query,
        found=found,
        is_too_short=is_too_short,
        problem=problem,
        **({} if query or is_fragment else _newest()),
    )


def _newest() -> dict[str, Json]:
    query = {"order": "-created_at", "limit": RECENT}
    return {"tenants": get("/v1/tenants", **query).data, "changes": recent_changes(tenants=True)}


@page("/work")
def show_work() -> Shown:
    """Show what wants attention. The home page loads it, since it takes as long as all the rest."""
    numbers = get("/v1/operations/work").data
    work = [_work(each) for each in numbers if each["count"] != 0]
    return render("work", "Wants attention", work=work)


def _work(number: Json) -> dict[str, Json]:
    """A number of what wants attention: in words, and the page that lists it."""
    path, _, query = number["list"].partition("?")
    filters = {key: value for key, value in parse_qsl(query) if key != "include"}
    label = LABELS.get(number["name"], number["name"].replace("_", " "))
    return {**number, "label": label, "url": url_for(f"console.{PAGES[path]}", **filters)}


def _url(found: Json) -> str:
    """The page of a result; an empty text for one without a page."""
    kind, tenant_id = found["type"], (found["tenant"] or {}).get("id")
    if kind not in ("tenant", "user", "subscription"):
        return ""
    return url_for(f"console.show_{kind}", **{"tenant_id": tenant_id, f"{kind}_id": found["id"]})
