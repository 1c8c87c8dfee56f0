"""Events as records of the Open Cybersecurity Schema Framework (OCSF), version 1.4.0.

The records use only attributes that the later versions 1.x also have. No type is a sign-in, so none
is Authentication (3002): people sign in at the identity provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core.clock import rfc3339
from app.core.json_text import Json
from app.events.catalogue import CATALOGUE

PRODUCT = {"name": "controlplane", "vendor_name": "controlplane"}
CREATE, UPDATE, DELETE, ENABLE, DISABLE, ACTIVATE, DEACTIVATE, SUSPEND = 1, 3, 4, 8, 9, 10, 11, 12
OTHER = 99
UNKNOWN = {"name": "unknown"}  # an event without ``data`` does not tell it
SECRET = ("token", "url")  # of an invitation: who reads a log must not be able to accept it
NAMES = ("name", "slug", "label", "flag_key", "email", "address", "recipient", "feature")


class OcsfClass(NamedTuple):
    """A class, and its activities for the last words of types; other words are ``other``."""

    uid: int
    name: str
    activities: Mapping[str, int]
    other: int = OTHER


ACCOUNT = OcsfClass(3001, "Account Change", {"created": 1, "erased": 6})
GROUP = OcsfClass(
    3006,
    "Group Management",
    {"role_changed": 1, "created": 3, "activated": 3, "deactivated": 4},
)
API = OcsfClass(6003, "API Activity", {})
ENTITY = OcsfClass(
    3004,
    "Entity Management",
    {
        **dict.fromkeys(("created", "granted"), CREATE),
        **dict.fromkeys(("deleted", "ended", "expired", "revoked"), DELETE),
        **dict.fromkeys(("accepted", "restored"), ENABLE),
        **dict.fromkeys(("archived", "declined", "disabled", "lapsed", "suppressed"), DISABLE),
        "activated": ACTIVATE,
        "deactivated": DEACTIVATE,
        "suspended": SUSPEND,
    },
    UPDATE,
)
CLASSES = {"limit": API, "membership": GROUP, "user": ACCOUNT}
"""The first word of a type -> its class; all others are Entity Management."""


def class_of(event_type: str) -> tuple[OcsfClass, int]:
    """The class of a type, and its ``activity_id``."""
    subject, _, change = event_type.partition(".")
    found = CLASSES.get(subject, ENTITY)
    return found, found.activities.get(change, found.other)


def to_ocsf(event: Mapping[str, Any]) -> dict[str, Json]:
    """The record of an event that :class:`app.events.schemas.EventSchema` has dumped.

    ``unmapped`` has what OCSF has no attribute for. The tokens of invitations are left out.
    """
    kind, (found, activity) = event["type"], class_of(event["type"])
    is_invitation = kind.startswith("invitation.")
    data = {
        name: value
        for name, value in event.get("data", {}).items()
        if not (is_invitation and name in SECRET)
    }
    others = {name: event[name] for name in ("tenant", "changes", "truncated") if name in event}
    metadata = {
        "version": "1.4.0",
        "product": PRODUCT,
        "uid": event["id"],
        "event_code": kind,
        "original_time": rfc3339(event["timestamp"]),
        "tenant_uid": event["tenant_id"],
        "correlation_uid": event["request_id"],
    }
    return {
        "class_uid": found.uid,
        "class_name": found.name,
        "category_uid": found.uid // 1000,
        "activity_id": activity,
        **({"activity_name": kind.partition(".")[2]} if activity == OTHER else {}),
        "type_uid": found.uid * 100 + activity,
        "time": round(event["timestamp"].timestamp() * 1000),
        "severity_id": 1,  # informational
        "status_id": 1,  # success
        "message": CATALOGUE[kind].summary,
        "metadata": _known(metadata),
        "actor": {"user": {"uid": event["actor"]}},
        **_subject(found, event, data),
        "unmapped": {"position": event["position"], **others, "data": data},
    }


def _subject(found: OcsfClass, event: Mapping[str, Any], data: Mapping[str, Any]) -> Json:
    """What the event is about, in the attributes of the class."""
    if found is ACCOUNT:
        user = {"uid": data.get("id"), "email_addr": data.get("email")}
        return {"user": _known(user) or UNKNOWN}
    if found is GROUP:
        slug = event["tenant"] and event["tenant"]["slug"]
        group = {"uid": event["tenant_id"], "name": slug, "type": "tenant"}
        roles = {"privileges": [data["role"]]} if data else {}
        return {"group": group, "user": _known({"uid": data.get("user_id")}) or UNKNOWN, **roles}
    kind, name = event["type"], next((data[key] for key in NAMES if data.get(key)), None)
    if found is API:
        source = {"name": event["actor"]}  # the addresses of requests are not stored
        return {"api": {"operation": kind}, "src_endpoint": source}
    entity = _known({"uid": data.get("id"), "name": name}) or UNKNOWN
    return {"entity": {**entity, "type": kind.partition(".")[0]}}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are neither null nor empty."""
    return {name: value for name, value in values.items() if value}
