"""A harmless event in each provider's form, for testing a receiver: an organization named Sample is
created, or a message was delivered to an address that does not exist."""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime
from typing import Any

MESSAGE = "sample-message"
RECIPIENT = "nobody@example.com"
SAMPLE_ID = re.compile(r"sample_[0-9a-f]{16}")


def sample(provider: str, now: float) -> bytes:
    """The body of an event at ``now``, in seconds since 1970; KeyError for an unknown provider."""
    return json.dumps(_BODIES[provider](_id(), now)).encode()


def is_sample(id_: str) -> bool:
    """Whether an id is that of a sample's organization."""
    return SAMPLE_ID.fullmatch(id_) is not None


def _id() -> str:
    return f"sample_{secrets.token_hex(8)}"


def _iso(now: float) -> str:
    return (
        datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _generic(id_: str, now: float) -> Any:
    data = {"id": id_, "name": "Sample"}
    return {"type": "organization.created", "timestamp": _iso(now), "data": data}


def _workos(id_: str, now: float) -> Any:
    times = {"created_at": _iso(now), "updated_at": _iso(now)}
    data = {"object": "organization", "id": id_, "name": "Sample", **times}
    return {"id": id_, "event": "organization.created", "data": data, "created_at": _iso(now)}


def _clerk(id_: str, now: float) -> Any:
    millis = int(now * 1000)
    data = {"object": "organization", "id": id_, "name": "Sample", "updated_at": millis}
    return {"object": "event", "type": "organization.created", "timestamp": millis, "data": data}


def _logto(id_: str, now: float) -> Any:
    data = {"id": id_, "name": "Sample"}
    return {"event": "Organization.Created", "hookId": id_, "createdAt": _iso(now), "data": data}


def _auth0(id_: str, now: float) -> Any:
    return {
        "specversion": "1.0",
        "type": "organization.created",
        "source": "urn:auth0:sample",
        "id": id_,
        "time": _iso(now),
        "data": {"object": {"id": id_, "name": id_.replace("_", "-"), "display_name": "Sample"}},
        "a0tenant": "sample",
    }


def _stytch(id_: str, now: float) -> Any:
    return {
        "event_id": id_,
        "source": "DIRECT",
        "object_type": "organization",
        "action": "CREATE",
        "id": id_,
        "timestamp": _iso(now),
        "organization": {"organization_id": id_, "organization_name": "Sample"},
    }


def _generic_email(id_: str, now: float) -> Any:
    data = {"message_id": MESSAGE, "recipient": RECIPIENT}
    return {"type": "email.delivered", "timestamp": _iso(now), "data": data}


def _resend(id_: str, now: float) -> Any:
    data = {"email_id": MESSAGE, "to": [RECIPIENT], "created_at": _iso(now)}
    return {"type": "email.delivered", "created_at": _iso(now), "data": data}


def _sendgrid(id_: str, now: float) -> Any:
    event = {"event": "delivered", "email": RECIPIENT, "timestamp": int(now)}
    return [{**event, "sg_event_id": id_, "sg_message_id": MESSAGE}]


def _mailgun(id_: str, now: float) -> Any:
    message = {"headers": {"message-id": MESSAGE}}
    data = {"event": "delivered", "id": id_, "timestamp": now, "recipient": RECIPIENT}
    return {"event-data": {**data, "message": message}}


def _postmark(id_: str, now: float) -> Any:
    delivery = {"RecordType": "Delivery", "MessageID": MESSAGE, "Recipient": RECIPIENT}
    return {**delivery, "DeliveredAt": _iso(now)}


_BODIES = {
    "generic": _generic,
    "workos": _workos,
    "clerk": _clerk,
    "logto": _logto,
    "auth0": _auth0,
    "stytch": _stytch,
    "generic_email": _generic_email,
    "resend": _resend,
    "sendgrid": _sendgrid,
    "mailgun": _mailgun,
    "postmark": _postmark,
}
