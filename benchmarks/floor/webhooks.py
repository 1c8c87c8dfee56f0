"""The receiver: verify, insert once, commit, push."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time

import orjson
import redis
from uuid_utils.compat import uuid7

from benchmarks.floor.core import Answer, Environ, Refused, dumps, session

TOLERANCE = 300
SECRETS = [
    base64.b64decode(pair.partition(":whsec_")[2])
    for pair in os.environ["IDP_WEBHOOK_SECRETS"].split()
    if pair.startswith("standard_webhooks:")
]
STORE = """
    INSERT INTO webhook_events (id, created_at, updated_at, version, source, external_id,
        event_type, status, detail, attempts, replays, next_attempt_at, headers, body, digest,
        request_id)
    VALUES (%s, now(), now(), 1, 'floor', %s, %s, 'pending', '', 0, 0, now(), '{}', %s, %s, %s)
    ON CONFLICT (source, external_id) DO NOTHING"""

queue = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=0.5)


def receive(environ: Environ) -> Answer:
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    message_id = _verified(environ, body)
    event_type = str(orjson.loads(body).get("type", ""))
    event_id = str(uuid7())
    with session() as transaction, transaction.cursor() as database:
        values = (event_id, message_id, event_type, body, hashlib.sha256(body).hexdigest())
        database.execute(STORE, (*values, str(uuid7())))
        duplicate = database.rowcount == 0
    if not duplicate:
        queue.rpush("floor:webhooks", event_id)
    return [], dumps({"status": "accepted", "event_id": event_id, "duplicate": duplicate})


def _verified(environ: Environ, body: bytes) -> str:
    message_id = environ.get("HTTP_WEBHOOK_ID", "")
    timestamp = environ.get("HTTP_WEBHOOK_TIMESTAMP", "")
    if not message_id or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise Refused("401 Unauthorized", "Not authenticated")
    content = f"{message_id}.{timestamp}.".encode() + body
    for secret in SECRETS:
        expected = b"v1," + base64.b64encode(hmac.digest(secret, content, "sha256"))
        for entry in environ.get("HTTP_WEBHOOK_SIGNATURE", "").split(" "):
            if hmac.compare_digest(entry.encode(), expected):
                return message_id
    raise Refused("401 Unauthorized", "Not authenticated")
