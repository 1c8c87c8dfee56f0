"""The application: ``gunicorn benchmarks.floor.main:app``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from benchmarks.floor import billing, people, webhooks
from benchmarks.floor.core import (
    PERMISSIONS,
    Answer,
    Environ,
    Refused,
    authenticate,
    session,
    verified,
)

ROUTES = [
    ("GET", re.compile(r"/v1/users/([^/]+)"), "users:read", people.get_user),
    ("GET", re.compile(r"/v1/users"), "users:read", people.list_users),
    ("PATCH", re.compile(r"/v1/users/([^/]+)/meta_data"), "users:write", people.patch_meta_data),
    (
        *("PATCH", re.compile(r"/v1/memberships/tenant/([^/]+)/role"), "memberships:write"),
        people.patch_role,
    ),
    (
        *("PATCH", re.compile(r"/v1/billing/subscriptions/([^/]+)"), "billing:write"),
        billing.patch_subscription,
    ),
    ("POST", re.compile(r"/ofrep/v1/evaluate/flags"), "flags:read", billing.evaluate_flags),
]


def app(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        headers, body = dispatch(environ)
        status = "200 OK"
    except Refused as refused:
        status, headers = refused.status, []
        body = orjson.dumps({"detail": refused.detail})
    start_response(
        status,
        [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers],
    )
    return [body]


def dispatch(environ: Environ) -> Answer:
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if (method, path) == ("POST", "/webhooks/idp"):
        return webhooks.receive(environ)
    for verb, pattern, permission, handler in ROUTES:
        if verb == method and (match := pattern.fullmatch(path)):
            claims = verified(environ.get("HTTP_AUTHORIZATION", ""))
            with session() as transaction, transaction.cursor() as database:
                caller = authenticate(database, claims)
                if permission not in PERMISSIONS[caller.role]:
                    raise Refused("403 Forbidden", f"This needs the permission {permission}.")
                return handler(database, caller, environ, *match.groups())
    raise Refused("404 Not Found", "Not Found")
