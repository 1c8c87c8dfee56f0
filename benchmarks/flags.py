"""``python -m benchmarks flags``: what rules cost the evaluation of all flags (OFREP).

Requests for a plan of 50 flags take turns with those for a plan whose flags have five rules each,
of which none matches. The medians include PostgreSQL's time.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from typing import Any

from flask.testing import FlaskClient

from app import create_app
from benchmarks.calls import PLATFORM_SUBJECT, WARM_UP, add_platform_admin, credential
from benchmarks.stage import Stage

FLAGS, REQUESTS = 50, 400
PLANS = ("flags-plain", "flags-rules")
CONTEXT = {"targetingKey": "nobody", "device": "desk", "app_version": "2.5.1"}


def report(stage: Stage) -> str:
    """The medians, and their ratio."""
    add_platform_admin(stage)
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        headers = credential(stage, PLATFORM_SUBJECT)
        tenants = client.get("/v1/tenants?limit=1", headers=headers).json["data"]
        path = f"/v1/tenants/{tenants[0]['id']}/plan"
        times = dict[str, list[float]]()
        for plan in PLANS:
            flags = [_flag(number, has_rules=plan == PLANS[1]) for number in range(FLAGS)]
            _send(client, "POST", "/v1/billing/plans", headers, {"name": plan, "flags": flags})
        for _ in range(4):  # the plans take turns
            for plan in PLANS:
                _send(client, "PUT", path, headers, {"plan_name": plan, "until": None})
                times.setdefault(plan, []).extend(_times(client, headers, tenants[0]["id"]))
    plain, ruled = (statistics.median(times[plan]) * 1000 for plan in PLANS)
    return (
        f"{FLAGS} flags: {plain:.2f} ms; with five rules each: {ruled:.2f} ms, {ruled / plain:.2f}"
        " times as much."
    )


def _times(client: FlaskClient, headers: dict[str, str], tenant_id: str) -> list[float]:
    """Seconds of each request, without the first ones."""
    found = []
    for _ in range(WARM_UP + REQUESTS // 4):
        start = time.perf_counter()
        body = {"context": {**CONTEXT, "tenant_id": tenant_id}}
        _send(client, "POST", "/ofrep/v1/evaluate/flags", headers, body)
        found.append(time.perf_counter() - start)
    return found[WARM_UP:]


def _send(client: FlaskClient, method: str, path: str, headers: dict[str, str], body: Any) -> None:
    answer = client.open(path, method=method, headers=headers, json=body)
    if answer.status_code >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {answer.text}")


def _flag(number: int, *, has_rules: bool) -> dict[str, Any]:
    flag = {"flag_key": f"flag-{number}", "flag_type": "boolean", "default_value": False}
    return {**flag, "rules": list(_rules())} if has_rules else flag


def _rules() -> list[dict[str, Any]]:
    plan = {"attribute": "tenant.plan", "op": "in", "value": ["growth", "pro"]}
    device = {"attribute": "context.device", "op": "eq", "value": "phone"}
    version = {"attribute": "context.app_version", "op": "semver_gt", "value": "3.0"}
    conditions = [{"all": [plan, device]}, {"any": [plan, device]}, {"all": [version, plan]}]
    rules = [{"when": when} for when in [*conditions, {"not": {"not": device}}]]
    rollout = {"rollout": {"percent": 0.001}}
    return [
        {"name": str(place), **rule, "value": True} for place, rule in enumerate([*rules, rollout])
    ]
