"""Records the use of an API key by a request that is answered with 4xx.

``authenticate_key`` records the use in the request's transaction, which an error rolls back.
So the use is recorded again after the request, in a separate transaction.
"""

from __future__ import annotations

import logging

from flask import Response

from app.core.db.statements import Statement
from app.core.db.transactions import DATABASE_FAULTS, transaction
from app.core.http.request import current_request

log = logging.getLogger(__name__)

RECORD_USE = Statement(
    "api_keys.record_use",
    "UPDATE api_keys SET last_used_at = now() WHERE id = ("
    "SELECT id FROM api_keys WHERE id = :key_id"
    " AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')"
    " FOR UPDATE SKIP LOCKED)",
)


def record_refused_use(response: Response) -> Response:
    """Flask's hook after each request: record the use of its API key if the status is 4xx."""
    key_id = current_request().api_key_id if 400 <= response.status_code < 500 else None
    if key_id is None:
        return response
    try:
        with transaction():
            RECORD_USE.execute(key_id=str(key_id))
    except DATABASE_FAULTS as fault:
        log.warning("key_use_not_recorded", extra={"reason": type(fault).__name__})
    return response
