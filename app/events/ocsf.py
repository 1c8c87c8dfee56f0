"""Events as records of the Open Cybersecurity Schema Framework (OCSF), version 1.4.0.

The records use only attributes that the later versions 1.x also have. No type is a sign-in, so none
is Authentication (3002): people sign in at the identity provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.clock import rfc3339
from app.core.json_text import Json
from app.events.catalogue import CATALOGUE

ACCOUNT, ENTITY, GROUP, API = 3001, 3004, 3006, 6003
CLASSES = {"limit": API, "membership": GROUP, "user": ACCOUNT}
"""The first word of a type -> its class: Account Change, Group Management, API Activity. All others
are Entity Management."""

OTHER, UPDATE = 99, 3
ACTIVITIES: dict[int, dict[str, int]] = {
    ACCOUNT: {"created": 1, "erased": 6},
    GROUP: {"role_changed": 1, "created": 3, "activated": 3, "deactivated": 4},
    ENTITY: {
        **dict.fromkeys(("created", "granted"), 1),
        **dict.fromkeys(("deleted", "ended", "expired", "revoked"), 4),
        **dict.fromkeys(("accepted", "restored"), 8),
        **dict.fromkeys(("archived", "declined", "disabled", "lapsed", "suppressed"), 9),
        "activated": 10,
        "deactivated": 11,
        "suspended": 12,
    },
    API: {},
}
"""Class -> the last word of a type -> the activity. Other words are an update, or "other"."""

UNKNOWN = {"name": "unknown"}  # an event without ``data`` does not contain it
NAMES = ("name", "slug", "label", "flag_key", "email", "address", "recipient", "feature")


def class_of(event_type: str) -> tuple[int, int]:
    """The ``class_uid`` and ``activity_id`` of a type."""
    subject, _, change = event_type.partition(".")
    class_uid = CLASSES.get(subject, ENTITY)
    other = UPDATE if class_uid == ENTITY else OTHER
    return class_uid, ACTIVITIES[class_uid].get(change, other)


def to_ocsf(event: Mapping[str, Any]) -> dict[str, Json]:
    """The record of an event that :class:`app.events.schemas.EventSchema` has dumped.

    ``unmapped`` has what OCSF has no attribute for.
    """
    kind = event["type"]
    class_uid, activity = class_of(kind)
    others = ("position", "tenant", "data", "changes", "truncated")
    metadata = {
        "version": "1.4.0",
        "product": {"name": "controlplane", "vendor_name": "controlplane"},
        "uid": event["id"],
        "event_code": kind,
        "original_time": rfc3339(event["timestamp"]),
        "tenant_uid": event["tenant_id"],
        "correlation_uid": event["request_id"],
    }
    return {
        "class_uid": class_uid,
        "category_uid": class_uid // 1000,
        "activity_id": activity,
        **({"activity_name": kind.partition(".")[2]} if activity == OTHER else {}),
        "type_uid": class_uid * 100 + activity,
        "time": round(event["timestamp"].timestamp() * 1000),
        "severity_id": 1,  # informational
        "status_id": 1,  # success
        "message": CATALOGUE[kind].summary,
        "metadata": _known(metadata),
        "actor": {"user": {"uid": event["actor"]}},
        **_subject(class_uid, event, event.get("data", {})),
        "unmapped": {name: event[name] for name in others if name in event},
    }


def _subject(class_uid: int, event: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Json]:
    """The subject of the event, in the attributes that the class has for it."""
    match class_uid:
        case 3001:
            user = {"uid": data.get("id"), "email_addr": data.get("email")}
            return {"user": _known(user) or UNKNOWN}
        case 3006:
            slug = event["tenant"] and event["tenant"]["slug"]
            group = {"uid": event["tenant_id"], "name": slug, "type": "tenant"}
            user, roles = _known({"uid": data.get("user_id")}), [data["role"]] if data else []
            return {"group": _known(group), "user": user or UNKNOWN, "privileges": roles}
        case 6003:  # the addresses of requests are not stored
            return {"api": {"operation": event["type"]}, "src_endpoint": {"name": event["actor"]}}
    name = next((data[key] for key in NAMES if data.get(key)), None)
    entity = _known({"uid": data.get("id"), "name": name}) or UNKNOWN
    return {"entity": {**entity, "type": event["type"].partition(".")[0]}}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are neither null nor empty."""
    return {name: value for name, value in values.items() if value}
