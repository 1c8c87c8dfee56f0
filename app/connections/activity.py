"""The activity of a connection: its counters, its last error, and its last 100 requests.

They are written after the answer, in a transaction of its own, because an error rolls back the
request's. Values that were sent are not stored: only attribute names of filters, and ids. The metric
counts by provider, because the number of connections has no bound.
"""

from __future__ import annotations

import json
import logging
import re
from urllib.parse import parse_qsl

from flask import Request, Response, g, request
from prometheus_client import Counter
from sqlalchemy import Uuid, bindparam, text

from app.connections.models import Connection
from app.core.db import tenancy
from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.db.transactions import DATABASE_FAULTS, transaction

log = logging.getLogger(__name__)

KEPT = 100  # requests of a connection
MAX_PATH = 500  # characters
REQUESTS = Counter("scim_requests_total", "Requests of SCIM connections.", ["provider", "outcome"])
OUTCOMES = {4: "refused", 5: "failed"}  # by the first digit of the status; others have succeeded
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
SHOWN = {"startIndex", "count", "attributes", "excludedAttributes"}

RECORD = Statement(
    "scim_requests.record",
    text(
        """
        WITH counted AS (
            UPDATE scim_connections SET
                last_request_at = now(),
                request_count = request_count + 1,
                error_count = error_count + CASE WHEN :error = '' THEN 0 ELSE 1 END,
                last_error = CASE WHEN :error = '' THEN last_error ELSE :error END,
                last_error_at = CASE WHEN :error = '' THEN last_error_at ELSE now() END
            WHERE tenant_id = :tenant_id AND id = :connection_id
            RETURNING tenant_id, id, request_count, provider
        )
        INSERT INTO scim_requests
            (tenant_id, connection_id, slot, sent_at, method, path, status, detail)
            SELECT tenant_id, id, request_count % :kept, now(), :method, :path, :status, :detail
            FROM counted
        ON CONFLICT (tenant_id, connection_id, slot) DO UPDATE SET
            sent_at = excluded.sent_at, method = excluded.method, path = excluded.path,
            status = excluded.status, detail = excluded.detail
        RETURNING (SELECT provider FROM counted)
        """
    ).bindparams(bindparam("tenant_id", type_=Uuid), bindparam("connection_id", type_=Uuid)),
    prepare=False,
)


def note(connection: Connection) -> bool:
    """Store in ``g`` the connection of the current request; False if that was done before."""
    is_new = "scim_connection" not in g
    g.scim_connection = connection.tenant_id, connection.id
    return is_new


def note_ignored(name: str) -> None:
    """Show in the log of the connection that this attribute of the request was ignored."""
    g.setdefault("scim_ignored", set()).add(name[:100])


def record(response: Response) -> Response:
    """Record the request that is answered, if it is a connection's; a fault is only logged."""
    found = g.pop("scim_connection", None)
    if found is None:
        return response
    tenant_id, connection_id = found
    path, detail = redacted_path(request), _detail(response)
    is_error = response.status_code >= 400
    error = f"{request.method} {path}: {response.status_code} {detail}".strip() if is_error else ""
    try:
        with transaction():
            tenancy.enter(tenancy.Scope(tenant_id))
            provider = RECORD.scalar(
                tenant_id=tenant_id,
                connection_id=connection_id,
                kept=KEPT,
                method=request.method[:20],
                path=path,
                status=response.status_code,
                detail=detail,
                error=error,
            )
    except DATABASE_FAULTS as fault:
        log.warning("scim_request_not_recorded", extra={"reason": type(fault).__name__})
    else:
        if provider is not None:  # None for a connection that was deleted meanwhile
            outcome = OUTCOMES.get(response.status_code // 100, "succeeded")
            REQUESTS.labels(provider, outcome).inc()
    return response


def redacted_path(request: Request) -> str:
    """The path below the base and its query, with ``…`` for values that may be personal."""
    parts = request.path.split("/")[3:]
    shown = [part if part.isidentifier() or id_or_none(part) else "…" for part in parts]
    query = [
        f"{name}={value if name in SHOWN else QUOTED.sub('…', value)}"
        for name, value in parse_qsl(request.query_string.decode("latin-1"))
        if name in SHOWN | {"filter"}
    ]
    path = f"/{'/'.join(shown)}{'?' if query else ''}{'&'.join(query)}"
    return path.encode(errors="replace").decode().replace("\0", "…")[:MAX_PATH]


def _detail(response: Response) -> str:
    ignored = sorted(g.pop("scim_ignored", ()))
    if response.status_code < 400:
        return f"ignored {', '.join(ignored)}"[:MAX_PATH] if ignored else ""
    body = json.loads(response.get_data() or "{}")
    return str(body.get("scimType", ""))
