"""The tasks of a setup link. What a task creates gets no traffic until its test has passed."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import redirect, request, url_for
from werkzeug.wrappers import Response

from app.config import current_config
from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, render
from app.console.fields import Field
from app.console.forms import Form
from app.console.next_page import Notice, set_notice
from app.console.pages import endpoints, log_streams, scim
from app.console.pages.common import are_underway, choose
from app.console.pages.setup import TASKS, badge_of, setup_page, state_of
from app.core.http.routing import own_address
from app.core.json_text import Json

DOMAINS = TASKS["domains"].path
NAMES = {**scim.PROVIDERS, "generic": "Your directory"}
DOMAIN = Field("name", "Domain", help="Such as example.com.", is_required=True)


@setup_page("/<any(scim, domains, 'webhook-endpoints', 'log-streams'):name>")
def setup_task(name: str) -> Shown:
    """Show what a task has created; its form where there is nothing yet."""
    task = TASKS[name]
    rows = [(one[task.shown], one["id"], badge_of(one)) for one in api.get_all(task.path)]
    if not rows:
        return redirect(f"{request.path}/new")
    return render("setup_list", task.title, rows=rows)


@setup_page("/scim/new", "GET", "POST")
def setup_new_connection() -> Shown:
    def body(values: Json) -> Json:
        return {**values, "name": NAMES.get(values["provider"], ""), "status": "testing"}

    form = _form("Connect your directory", scim.DIRECTORY)
    return form.send("POST", scim.PATH, body=body, show=_connection_page)


@setup_page("/scim/<uuid:connection_id>")
def setup_connection(connection_id: UUID) -> Shown:
    return _connection_page(api.get(f"{scim.PATH}/{connection_id}"))


@setup_page("/scim/<uuid:connection_id>/token", "POST")
def setup_token(connection_id: UUID) -> Shown:
    """Replace the token of a connection; before the test the old token ends at once."""
    path = f"{scim.PATH}/{connection_id}"
    hours = 0 if state_of(api.get(path).data) == "waits" else 24
    rotated = api.call("POST", f"{path}/rotate", body={"overlap_hours": hours})
    return _connection_page(api.succeeded(rotated))


@setup_page("/scim/<uuid:connection_id>/test", "POST")
def setup_connection_test(connection_id: UUID) -> Shown:
    """Activate a connection that its directory has reached, or else that passes the service's test."""
    path = f"{scim.PATH}/{connection_id}"
    connection = api.get(path)
    if state_of(connection.data) != "waits":
        return redirect(_page(), 303)
    if connection.data["request_count"] == connection.data["error_count"]:
        tested = api.succeeded(api.call("POST", f"{path}/test")).data
        if not tested["has_passed"]:
            return _connection_page(connection, steps=tested["steps"])
    return _activate("PATCH", path, {"status": "active"})


@setup_page("/domains/new", "GET", "POST")
def setup_new_domain() -> Shown:
    form = _form("Verify a domain", DOMAIN)
    return form.send("POST", DOMAINS, to=lambda answer: f"{_page()}/{answer.data['id']}")


@setup_page("/domains/<uuid:domain_id>")
def setup_domain(domain_id: UUID) -> Shown:
    domain = api.get(f"{DOMAINS}/{domain_id}").data
    return render("setup_domain", domain["display_name"], domain=domain, state=badge_of(domain))


@setup_page("/domains/<uuid:domain_id>/verify", "POST")
def setup_domain_check(domain_id: UUID) -> Shown:
    answer = api.call("POST", f"{DOMAINS}/{domain_id}/verify")
    if answer.status == 409:
        return set_notice(redirect(_page(), 303), Notice(answer.detail, is_bad=True))
    api.succeeded(answer)
    return redirect(_page(), 303)


@setup_page("/sso")
def setup_sso() -> Shown:
    link, url = current_session().link, current_config().sso_portal_url
    url = url.replace("{tenant_id}", str(link.tenant_id))
    url = url.replace("{org_id}", quote(link.idp_org_id, safe=""))
    connections = [(one, badge_of(one)) for one in api.get_all(TASKS["sso"].path)]
    return render("setup_sso", TASKS["sso"].title, url=url, connections=connections)


@setup_page("/webhook-endpoints/new", "GET", "POST")
def setup_new_endpoint() -> Shown:
    form = _form("Receive events", *endpoints.CHANGEABLE, values={"types": ["*"]})
    body = lambda values: {**values, "is_active": False}  # noqa: E731
    return form.send("POST", endpoints.PATH, body=body, show=_endpoint_page)


@setup_page("/webhook-endpoints/<uuid:endpoint_id>")
def setup_endpoint(endpoint_id: UUID) -> Shown:
    return _endpoint_page(api.get(f"{endpoints.PATH}/{endpoint_id}"))


@setup_page("/webhook-endpoints/<uuid:endpoint_id>/secret", "POST")
def setup_secret(endpoint_id: UUID) -> Shown:
    return _endpoint_page(api.succeeded(api.call("POST", f"{endpoints.PATH}/{endpoint_id}/rotate")))


@setup_page("/webhook-endpoints/<uuid:endpoint_id>/test", "POST")
def setup_endpoint_test(endpoint_id: UUID) -> Shown:
    path = f"{endpoints.PATH}/{endpoint_id}/test"
    api.succeeded(api.call("POST", path, body={"type": "user.created"}))
    return redirect(_page(), 303)


@setup_page("/webhook-endpoints/<uuid:endpoint_id>/activate", "POST")
def setup_endpoint_activate(endpoint_id: UUID) -> Shown:
    """Activate an endpoint that has answered a test; all deliveries before that were tests."""
    path = f"{endpoints.PATH}/{endpoint_id}"
    is_waiting = state_of(api.get(path).data) == "waits"
    passed = is_waiting and api.get(f"{path}/deliveries", status="succeeded", limit=1).data
    return _activate("PATCH", path, {"is_active": True}, has_passed=bool(passed))


@setup_page("/log-streams/new")
def setup_choose_log_stream() -> Shown:
    title, back = TASKS["log-streams"].title, url_for("console.setup")
    return choose(title, log_streams.KIND, log_streams.new_page, back=back)


@setup_page("/log-streams/new/<kind>", "GET", "POST")
def setup_new_log_stream(kind: str) -> Shown:
    return log_streams.send_new(TASKS["log-streams"].title, kind, submit="Continue")


@setup_page(log_streams.STREAM)
def setup_log_stream(stream_id: UUID) -> Shown:
    stream = log_streams.find_stream(stream_id)
    values = {"is_underway": log_streams.is_tested(stream), "can_begin": _can_begin(stream)}
    return render("setup_log_stream", stream["kind"], stream=stream, **values)


@setup_page(f"{log_streams.STREAM}/test", "POST")
def setup_log_stream_test(stream_id: UUID) -> Shown:
    tested = log_streams.find_stream(stream_id)["progress"]["tested_at"]
    api.succeeded(api.call("POST", f"{log_streams.PATH}/{stream_id}/test"))
    return redirect(f"{_page()}?tested={tested}", 303)


@setup_page(f"{log_streams.STREAM}/activate", "POST")
def setup_log_stream_activate(stream_id: UUID) -> Shown:
    has_passed = _can_begin(log_streams.find_stream(stream_id))
    return _activate("POST", f"{log_streams.PATH}/{stream_id}/resume", has_passed=has_passed)


def _can_begin(stream: Json) -> bool:
    """Whether the last test of a stream has succeeded that has written nothing yet."""
    progress = stream["progress"]
    is_new = stream["state"] == "paused" and not progress["written_at"]
    return bool(is_new and progress["tested_at"] and not progress["test_error"])


def _form(title: str, *fields: Field, values: Json = None) -> Form:
    back = url_for("console.setup")
    return Form(title, fields, values=values or {}, submit="Continue", back=back)


def _page() -> str:
    """The page above: that of the row, if the task is about a row."""
    return request.path.rpartition("/")[0]


def _activate(method: str, path: str, body: Json = None, *, has_passed: bool = True) -> Response:
    """Activate what has passed its test, and lead back to its page."""
    if not has_passed:
        notice = Notice("No test has succeeded yet.", is_bad=True)
        return set_notice(redirect(_page(), 303), notice)
    api.succeeded(api.call(method, path, body=body))
    return set_notice(redirect(_page(), 303), "The test has passed. It is active now.")


def _connection_page(answer: api.Answer, **values: object) -> Shown:
    """A connection with the steps of its directory, and the token if the answer has it."""
    connection, token = answer.data, answer.data.get("token") or ""
    return render(
        "setup_connection",
        NAMES[connection["provider"]],
        connection=connection,
        state=badge_of(connection),
        base_url=f"{own_address(request)}/scim/v2",
        token=token,
        is_followed=state_of(connection) == "waits" and not token,
        **values,
    ), answer.status


def _endpoint_page(answer: api.Answer) -> Shown:
    endpoint = answer.data
    tests = api.get(f"{endpoints.PATH}/{endpoint['id']}/deliveries", order="-created_at", limit=5)
    values = {"tests": tests.data, "is_underway": are_underway(tests.data)}
    values |= {"endpoint": endpoint, "state": badge_of(endpoint)}
    return render("setup_endpoint", endpoint["url"], **values), answer.status
