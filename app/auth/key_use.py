"""Records the use of an API key by a request that is answered with 4xx.

``authenticate_key`` records the use in the request's transaction, which an error rolls back.
So the use is recorded again after the request, in a separate transaction.
"""

from __future__ import annotations

import logging

import psycopg2
from flask import Flask, Response
from sqlalchemy import Uuid, bindparam, text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.core.http.request import current_request

log = logging.getLogger(__name__)

RECORD_USE = Statement(
    "api_keys.record_use",
    text(
        "UPDATE api_keys SET last_used_at = now() WHERE id = ("
        "SELECT id FROM api_keys WHERE id = :key_id"
        " AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')"
        " FOR UPDATE SKIP LOCKED)"
    ).bindparams(bindparam("key_id", type_=Uuid)),
)


def record_refused_uses(app: Flask) -> None:
    """Record the use of an API key after each answer with a 4xx status."""
    app.after_request(_record)


def _record(response: Response) -> Response:
    key_id = current_request().api_key_id if 400 <= response.status_code < 500 else None
    if key_id is None:
        return response
    try:
        with transaction():
            RECORD_USE.execute(key_id=key_id)
    except (psycopg2.Error, PoolTimeout) as fault:
        log.warning("key_use_not_recorded", extra={"reason": type(fault).__name__})
    return response
