"""A harmless event in each provider's form, for testing a receiver.

An organization named Sample is created, a message was delivered to an address that does not exist,
or a customer who belongs to no tenant has changed.
"""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime

NAME = "Sample"
MESSAGE = "sample-message"
RECIPIENT = "nobody@example.com"
SAMPLE_ID = re.compile(r"sample_[0-9a-f]{16}")


def sample(provider: str, now: float) -> bytes:
    """The body of an event at ``now``, in seconds since 1970; KeyError for an unknown provider."""
    id_ = f"sample_{secrets.token_hex(8)}"
    time = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    return json.dumps(_body(provider, id_, now, time.replace("+00:00", "Z"))).encode()


def is_sample(id_: str) -> bool:
    return SAMPLE_ID.fullmatch(id_) is not None


def _body(provider: str, id_: str, now: float, time: str) -> object:
    millis = int(now * 1000)
    match provider:
        case "generic":
            data = {"id": id_, "name": NAME}
            return {"type": "organization.created", "timestamp": time, "data": data}
        case "workos":
            times = {"created_at": time, "updated_at": time}
            data = {"object": "organization", "id": id_, "name": NAME, **times}
            return {"id": id_, "event": "organization.created", "data": data, "created_at": time}
        case "clerk":
            event = {"object": "event", "type": "organization.created", "timestamp": millis}
            organization = {"object": "organization", "id": id_, "name": NAME}
            return {**event, "data": {**organization, "updated_at": millis}}
        case "logto":
            event = {"event": "Organization.Created", "hookId": id_, "createdAt": time}
            return {**event, "data": {"id": id_, "name": NAME}}
        case "auth0":
            slug = id_.replace("_", "-")
            return {
                "specversion": "1.0",
                "type": "organization.created",
                "source": "urn:auth0:sample",
                "id": id_,
                "time": time,
                "data": {"object": {"id": id_, "name": slug, "display_name": NAME}},
                "a0tenant": "sample",
            }
        case "stytch":
            return {
                "event_id": id_,
                "source": "DIRECT",
                "object_type": "organization",
                "action": "CREATE",
                "id": id_,
                "timestamp": time,
                "organization": {"organization_id": id_, "organization_name": NAME},
            }
        case "stripe":
            customer = {"id": id_, "object": "customer", "metadata": {}}
            event = {
                "id": id_,
                "object": "event",
                "created": int(now),
                "data": {"object": customer},
            }
            return {**event, "type": "customer.updated"}
        case "paddle":
            event = {"event_id": id_, "event_type": "customer.updated", "occurred_at": time}
            return {**event, "data": {"id": id_, "custom_data": None}}
        case "chargebee":
            event = {"id": id_, "event_type": "customer_changed", "occurred_at": int(now)}
            return {**event, "content": {"customer": {"id": id_, "object": "customer"}}}
        case "lemonsqueezy":
            order = {"type": "orders", "id": id_, "attributes": {"created_at": time}}
            return {"meta": {"event_name": "order_created"}, "data": order}
        case "polar":
            event = {"type": "customer.updated", "timestamp": time}
            return {**event, "data": {"id": id_, "metadata": {}}}
        case "generic_email":
            data = {"message_id": MESSAGE, "recipient": RECIPIENT}
            return {"type": "email.delivered", "timestamp": time, "data": data}
        case "resend":
            message = {"email_id": MESSAGE, "to": [RECIPIENT], "created_at": time}
            return {"type": "email.delivered", "created_at": time, "data": message}
        case "sendgrid":
            event = {"event": "delivered", "email": RECIPIENT, "timestamp": int(now)}
            return [{**event, "sg_event_id": id_, "sg_message_id": MESSAGE}]
        case "mailgun":
            event = {"event": "delivered", "id": id_, "timestamp": now, "recipient": RECIPIENT}
            return {"event-data": {**event, "message": {"headers": {"message-id": MESSAGE}}}}
        case "postmark":
            event = {"RecordType": "Delivery", "MessageID": MESSAGE, "Recipient": RECIPIENT}
            return {**event, "DeliveredAt": time}
    raise KeyError(provider)
