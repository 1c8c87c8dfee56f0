"""The tasks of a setup link. What a task creates gets no traffic until its test has passed."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import redirect, request, url_for
from werkzeug.wrappers import Response

from app.config import current_config
from app.console import api
from app.console.access import Notice, current_session, set_notice
from app.console.blueprint import Shown, render
from app.console.fields import Field
from app.console.forms import Form
from app.console.pages import endpoints, scim
from app.console.pages.common import are_underway
from app.console.pages.setup import STATES, setup_page, state_of
from app.core.http.routing import own_address

DIRECTORY = Field(
    "provider", "Directory", "select", choices=list(scim.PROVIDERS.items()), is_required=True
)
NAMES = {**scim.PROVIDERS, "generic": "Your directory"}
DOMAIN = Field("name", "Domain", help="Such as example.com.", is_required=True)
DOMAINS = "/v1/domains"
POST = ("POST",)
FORM = ("GET", "POST")


@setup_page("/scim")
def setup_connections() -> Shown:
    rows = [(one["name"], _connection(one["id"]), _state(one)) for one in api.get_all(scim.PATH)]
    return _list("Connect your directory", rows, "setup_new_connection")


@setup_page("/scim/new", FORM)
def setup_new_connection() -> Shown:
    form = Form("Connect your directory", (DIRECTORY,), submit="Continue", back=_overview())
    return form.send(
        "POST",
        scim.PATH,
        body=lambda values: {
            **values,
            "name": NAMES.get(values["provider"], ""),
            "status": "testing",
        },
        show=_connection_page,
    )


@setup_page("/scim/<uuid:connection_id>")
def setup_connection(connection_id: UUID) -> Shown:
    return _connection_page(api.get(f"{scim.PATH}/{connection_id}"))


@setup_page("/scim/<uuid:connection_id>/token", POST)
def setup_token(connection_id: UUID) -> Shown:
    """Replace the token of a connection; the old one ends at once while nobody uses it."""
    path = f"{scim.PATH}/{connection_id}"
    hours = 0 if state_of(api.get(path).data) == "waits" else 24
    rotated = api.call("POST", f"{path}/rotate", body={"overlap_hours": hours})
    return _connection_page(api.succeeded(rotated))


@setup_page("/scim/<uuid:connection_id>/test", POST)
def setup_connection_test(connection_id: UUID) -> Shown:
    """Activate a connection that its directory has reached, or else that passes the service's test."""
    path = f"{scim.PATH}/{connection_id}"
    connection = api.get(path)
    if state_of(connection.data) != "waits":
        return redirect(_connection(connection_id), 303)
    if connection.data["request_count"] == connection.data["error_count"]:
        tested = api.succeeded(api.call("POST", f"{path}/test")).data
        if not tested["has_passed"]:
            return _connection_page(connection, steps=tested["steps"])
    return _activate(path, {"status": "active"}, _connection(connection_id))


@setup_page("/domains")
def setup_domains() -> Shown:
    found = api.get_all(DOMAINS)
    rows = [(one["display_name"], _domain(one["id"]), _state(one)) for one in found]
    return _list("Verify your domains", rows, "setup_new_domain")


@setup_page("/domains/new", FORM)
def setup_new_domain() -> Shown:
    form = Form("Verify a domain", (DOMAIN,), submit="Continue", back=_overview())
    return form.send("POST", DOMAINS, to=lambda answer: _domain(answer.data["id"]))


@setup_page("/domains/<uuid:domain_id>")
def setup_domain(domain_id: UUID) -> Shown:
    domain = api.get(f"{DOMAINS}/{domain_id}").data
    return render("setup_domain", domain["display_name"], domain=domain, state=_state(domain))


@setup_page("/domains/<uuid:domain_id>/verify", POST)
def setup_domain_check(domain_id: UUID) -> Shown:
    answer = api.call("POST", f"{DOMAINS}/{domain_id}/verify")
    if answer.status != 409:
        api.succeeded(answer)
        return redirect(_domain(domain_id), 303)
    return set_notice(redirect(_domain(domain_id), 303), Notice(answer.detail, is_bad=True))


@setup_page("/sso")
def setup_sso() -> Shown:
    link, url = current_session().link, current_config().sso_portal_url
    ids = {"{tenant_id}": str(link.tenant_id), "{org_id}": quote(link.idp_org_id, safe="")}
    for name, value in ids.items():
        url = url.replace(name, value)
    connections = [(one, _state(one)) for one in api.get_all("/v1/sso-connections")]
    return render("setup_sso", "Set up single sign-on", url=url, connections=connections)


@setup_page("/webhook-endpoints")
def setup_endpoints() -> Shown:
    found = api.get_all(endpoints.PATH)
    rows = [(one["url"], _endpoint(one["id"]), _state(one)) for one in found]
    return _list("Receive events", rows, "setup_new_endpoint")


@setup_page("/webhook-endpoints/new", FORM)
def setup_new_endpoint() -> Shown:
    form = Form("Receive events", endpoints.CHANGEABLE, values={"types": ["*"]}, submit="Continue")
    return form.send(
        "POST",
        endpoints.PATH,
        body=lambda values: {**values, "is_active": False},
        show=_endpoint_page,
    )


@setup_page("/webhook-endpoints/<uuid:endpoint_id>")
def setup_endpoint(endpoint_id: UUID) -> Shown:
    return _endpoint_page(api.get(f"{endpoints.PATH}/{endpoint_id}"))


@setup_page("/webhook-endpoints/<uuid:endpoint_id>/test", POST)
def setup_endpoint_test(endpoint_id: UUID) -> Shown:
    path = f"{endpoints.PATH}/{endpoint_id}"
    api.succeeded(api.call("POST", f"{path}/test", body={"type": "user.created"}))
    return redirect(_endpoint(endpoint_id), 303)


@setup_page("/webhook-endpoints/<uuid:endpoint_id>/activate", POST)
def setup_endpoint_activate(endpoint_id: UUID) -> Shown:
    """Activate an endpoint that has answered a test; every delivery before that was one."""
    path, page = f"{endpoints.PATH}/{endpoint_id}", _endpoint(endpoint_id)
    is_waiting = state_of(api.get(path).data) == "waits"
    if not is_waiting or not api.get(f"{path}/deliveries", status="succeeded", limit=1).data:
        return set_notice(redirect(page, 303), Notice("No test has succeeded yet.", is_bad=True))
    return _activate(path, {"is_active": True}, page)


def _activate(path: str, body: dict[str, object], page: str) -> Response:
    api.succeeded(api.call("PATCH", path, body=body))
    return set_notice(redirect(page, 303), "The test has passed. It is active now.")


def _connection_page(answer: api.Answer, **values: object) -> Shown:
    """A connection with the steps of its directory, and the token if the answer has it."""
    connection, token = answer.data, answer.data.get("token") or ""
    return render(
        "setup_connection",
        NAMES[connection["provider"]],
        connection=connection,
        state=_state(connection),
        base_url=f"{own_address(request)}/scim/v2",
        token=token,
        is_followed=state_of(connection) == "waits" and not token,
        **values,
    ), answer.status


def _endpoint_page(answer: api.Answer) -> Shown:
    endpoint = answer.data
    tests = api.get(f"{endpoints.PATH}/{endpoint['id']}/deliveries", order="-created_at", limit=5)
    return render(
        "setup_endpoint",
        endpoint["url"],
        endpoint=endpoint,
        state=_state(endpoint),
        tests=tests.data,
        is_underway=are_underway(tests.data),
    ), answer.status


def _list(title: str, rows: list[tuple[str, str, tuple[str, str]]], create: str) -> Shown:
    """What a task has created; its form where there is nothing yet."""
    new_url = url_for(f"console.{create}")
    return render("setup_list", title, rows=rows, new_url=new_url) if rows else redirect(new_url)


def _state(row: dict[str, object]) -> tuple[str, str]:
    """The badge of a row."""
    state = state_of(row)
    return STATES[state] if state != "none" else ("switched off", "bad")


def _overview() -> str:
    return url_for("console.setup")


def _connection(connection_id: object) -> str:
    return url_for("console.setup_connection", connection_id=connection_id)


def _domain(domain_id: object) -> str:
    return url_for("console.setup_domain", domain_id=domain_id)


def _endpoint(endpoint_id: object) -> str:
    return url_for("console.setup_endpoint", endpoint_id=endpoint_id)
