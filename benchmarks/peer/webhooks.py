"""The receiver: verify, insert once, commit, push."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from typing import Any
from uuid import uuid4

import orjson
from fastapi import APIRouter, HTTPException, Request
from redis.asyncio import Redis
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from benchmarks.peer.access import Session
from benchmarks.peer.models import WebhookEvent

TOLERANCE = 300
SECRETS = [
    base64.b64decode(pair.partition(":whsec_")[2])
    for pair in os.environ["IDP_WEBHOOK_SECRETS"].split()
    if pair.startswith("standard_webhooks:")
]

router = APIRouter()
queue = Redis.from_url(os.environ["REDIS_URL"], socket_timeout=0.5)


@router.post("/webhooks/idp")
async def receive(request: Request, session: Session) -> dict[str, Any]:
    body = await request.body()
    message_id = _verified(request, body)
    event_id = uuid7()
    statement = (
        insert(WebhookEvent)
        .values(
            id=event_id,
            source="peer",
            external_id=message_id,
            event_type=str(orjson.loads(body).get("type", "")),
            body=body,
            digest=hashlib.sha256(body).hexdigest(),
            request_id=str(uuid4()),
        )
        .on_conflict_do_nothing()
    )
    duplicate = (await session.execute(statement)).rowcount == 0
    await session.commit()
    if not duplicate:
        await queue.rpush("peer:webhooks", str(event_id))
    return {"status": "accepted", "event_id": event_id, "duplicate": duplicate}


def _verified(request: Request, body: bytes) -> str:
    message_id = request.headers.get("webhook-id", "")
    timestamp = request.headers.get("webhook-timestamp", "")
    if not message_id or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise HTTPException(401, "Not authenticated")
    content = f"{message_id}.{timestamp}.".encode() + body
    for secret in SECRETS:
        expected = b"v1," + base64.b64encode(hmac.digest(secret, content, "sha256"))
        for entry in request.headers.get("webhook-signature", "").split(" "):
            if hmac.compare_digest(entry.encode(), expected):
                return message_id
    raise HTTPException(401, "Not authenticated")
