"""/healthz, /readyz, /metrics, /docs and /v1/operations, for the operators of the service."""

from __future__ import annotations

from flask import Flask, Response, redirect, request
from flask_swagger_ui import get_swaggerui_blueprint
from prometheus_client import CONTENT_TYPE_LATEST
from redis.exceptions import RedisError
from werkzeug.wrappers import Response as AnyResponse

from app.auth.guard import bearer_of, public, requires
from app.auth.permissions import Permission
from app.config import current_config
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import reads_primary
from app.core.http.routing import own_address
from app.core.jobs.queues import connection
from app.core.json_text import Json
from app.operations import attention, metrics, service
from app.operations.attention import Number
from app.operations.checks.everything import check_all
from app.operations.queues import Queues, QueuesUnavailable, read_queues
from app.operations.schemas import FindingSchema, QueuesSchema, WorkSchema

NO_HOST = "A request of HTTP/1.1 does not have exactly one `Host`."

blp = Blueprint("operations", __name__, description="Health and documentation.")
state = Blueprint(
    "operations_state",
    __name__,
    url_prefix="/v1/operations",
    description="Queues, workers, and what the checks of the installation find.",
)


@blp.get("/healthz")
@public
@blp.response(200, description="The process answers.")
@blp.alt_response(400, description=NO_HOST)
def get_health() -> dict[str, str]:
    """Report that the process answers; checks nothing else."""
    return {"status": "ok"}


@blp.get("/readyz")
@public
@blp.response(200, description="The database and the migrations are ready.")
@blp.alt_response(400, description=NO_HOST)
@blp.alt_response(503, description="Requests cannot be answered; the body says why.")
def get_readiness() -> tuple[dict[str, Json], int]:
    """Report whether requests can be answered: database and migrations.

    Without Redis the answer is 200 with `"redis": "degraded"` among the checks: requests are
    answered, but jobs wait, and each process counts for the rate limits alone. `"replicas":
    "degraded"` means that the process does not read from one of them; others answer instead.
    """
    checks = service.readiness()
    ready = checks["database"] == checks["migrations"] == "ok"
    status = ("ok", 200) if ready else ("unavailable", 503)
    return {"status": status[0], "checks": checks}, status[1]


@blp.get("/metrics")
@public
@blp.response(200, description="Prometheus' text format.", content_type="text/plain")
@blp.alt_response(401, description="`METRICS_TOKEN` is set, and the request has another bearer.")
def get_metrics() -> Response:
    """Show the counters and gauges that Prometheus collects.

    Where the setting `METRICS_TOKEN` has a value, the request needs it as its bearer token.
    """
    service.check_metrics_token(bearer_of(request))
    return Response(metrics.page(), content_type=CONTENT_TYPE_LATEST)


@state.get("/queues")
@requires(Permission.SUPERADMIN, platform_only=True)
@state.response(200, QueuesSchema)
@state.raises(QueuesUnavailable)
def get_queues() -> Queues:
    """Show the queues of jobs and the workers."""
    try:
        return read_queues(connection())
    except RedisError:
        raise QueuesUnavailable from None


@state.get("/findings")
@requires(Permission.SUPERADMIN, platform_only=True)
@state.response(200, FindingSchema(many=True))
@reads_primary
def list_findings() -> Page:
    """Check the installation as `flask doctor` does, and list what is found.

    The configuration, PostgreSQL with the migrations, Redis and its queues, plans and limits. Each
    check has a time-out.
    """
    return Page(check_all(current_config(), quickly=True), None)


@state.get("/work")
@requires(Permission.SUPERADMIN, platform_only=True)
@state.columns("name", "count", "is_more", "list")
@state.response(200, WorkSchema(many=True))
@reads_primary
def list_work() -> list[Number]:
    """Count what wants attention, with the list of each: at most 1,000 of a kind.

    `trials_ending` within 7 days, `past_due` subscriptions, `over_limit`: tenants that have used up
    a limit, `failing_endpoints`, `failed_deliveries` of 7 days, `failing_log_streams`,
    `invalid_log_streams`, `failed_webhooks`, `waiting_people` of the identity provider,
    `waiting_billing`: billing events whose tenant is not known, `join_requests` that wait,
    `lapsed_domains`, `ending_certificates` of SSO connections within 30 days, `findings`: faults of
    PostgreSQL, Redis, the queues and the stored rows.
    """
    return list(attention.count_work())


docs = get_swaggerui_blueprint(
    "/docs",
    "/openapi.json",
    config={"app_name": "Tenant control plane", "persistAuthorization": True},
)


@public
def open_docs() -> AnyResponse:
    """Redirect to the page, which names its files relative to ``/docs/``."""
    return redirect(f"{own_address(request)}/docs/", 307)


def open_documentation(app: Flask) -> None:
    """Serve /docs; make it and /openapi.json public."""
    app.add_url_rule("/docs", view_func=open_docs)
    app.register_blueprint(docs)
    for endpoint, view in list(app.view_functions.items()):
        if endpoint.partition(".")[0] in (docs.name, "api-docs"):
            app.view_functions[endpoint] = public(view)


BLUEPRINTS = (blp, state)
