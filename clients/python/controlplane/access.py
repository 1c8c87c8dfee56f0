"""A tenant's access decisions in memory, loaded again when the service tells that they have changed."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import httpx

from .following import Following
from .rules import is_on

TIMEOUT = 30.0  # seconds; a snapshot can have some 20 MB
Object = Mapping[str, Any]
Place = tuple[str, str] | None  # a resource's type and id; None: the whole tenant
NOTHING: Object = {}


class Access(Following):
    """Decides from a snapshot what ``POST /access/v1/evaluation`` answers; the token's permission
    is ``access:read``.

    The snapshot is loaded at once; ApiError if it is refused. Without the service the last one
    stays, and before the first one everything is refused.
    """

    def __init__(self, url: str, token: str, *, tenant_id: str | None = None) -> None:
        self._query = {} if tenant_id is None else {"tenant_id": tenant_id}
        self._state: Snapshot | None = None
        super().__init__(url, token, is_stream_open=False)

    def check(
        self,
        subject: str | Object,
        action: str | Object,
        resource: Object,
        context: Object = NOTHING,
    ) -> bool:
        """Whether the subject may do it: AuthZEN's objects, or a user's id and a permission."""
        return self.refusal(subject, action, resource, context) == ""

    def refusal(
        self,
        subject: str | Object,
        action: str | Object,
        resource: Object,
        context: Object = NOTHING,
    ) -> str:
        """The code of what refuses it first, as ``context.reason`` has it; empty for a yes."""
        if self._state is None:
            return "unavailable"
        subject = {"type": "user", "id": subject} if isinstance(subject, str) else subject
        action = {"name": action} if isinstance(action, str) else action
        return self._state.refusal(subject, action, resource, context)

    def _ask(self, told: str, headers: dict[str, str]) -> httpx.Response:
        url = f"{self._url}/v1/access/snapshot"
        return httpx.get(url, params=self._query, headers=headers, timeout=TIMEOUT)

    def _load(self, found: Any) -> None:
        self._state = Snapshot(found["data"])
        self._stream = urljoin(self._url, found["data"]["stream"])


class Snapshot:
    """The document, indexed."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.tenant, self.permissions = found["tenant"], found["permissions"]
        self.flags, self.limits = found["flags"], found["limits"]
        self.resources: dict[Place, tuple[Place, dict[str, Any]]] = {
            (one["type"], one["id"]): (_place(one["parent"]), one["attributes"])
            for one in found["resources"]
        }
        self.subjects = {("api_key", key["id"]): key for key in found["api_keys"]}
        for way, *kinds in (
            ("id", "user"),
            ("idp_user_id", "user", "identity"),
            ("email", "email"),
        ):
            for user in found["users"]:  # the first one counts
                for kind in kinds if user[way] else ():
                    self.subjects.setdefault((kind, user[way]), user)
        roles = {key: frozenset(each) for key, each in found["roles"].items()}
        self.grants: defaultdict[tuple[str, Place], list[tuple[frozenset[str], datetime | None]]]
        self.grants = defaultdict(list)
        for one in found["assignments"]:
            target = one["membership_id"] or one["group_id"] or one["api_key_id"]
            grant = roles[one["role"]], _moment(one["expires_at"])
            self.grants[target, _place(one["resource"])].append(grant)
        for user in found["users"]:
            if member := user["membership"]:
                self.grants[member["id"], None].append((roles[member["role"]], None))
        for key in found["api_keys"]:
            self.grants[key["id"], None].append((frozenset(key["permissions"]), None))

    def refusal(
        self, subject: Object, action: Object, resource: Object, context: Object = NOTHING
    ) -> str:
        """As :meth:`Access.refusal`."""
        now, name = datetime.now(UTC), action["name"].lower()
        named = resource.get("properties", NOTHING).get("tenant_id") or context.get("tenant_id")
        if named and named not in [self.tenant[one] for one in ("id", "slug", "idp_org_id")]:
            return "tenant_not_found"
        if not self.tenant["is_active"]:
            return "tenant_suspended"
        known = self._find(subject["type"], subject["id"])
        if known is None:
            return "subject_not_found"
        if "groups" not in known:
            targets, user = [known["id"]], {}
            end = _moment(known["expires_at"])
            if not known["is_active"] or (end and end <= now):
                return "key_invalid"
        else:
            user, member = known, known["membership"]
            if not user["is_active"]:
                return "user_inactive"
            if member is None or not member["is_active"]:
                return "membership_inactive" if member else "membership_not_found"
            targets = [member["id"], *user["groups"]]
        if name not in self.permissions:
            return "permission_not_found"
        place = resource["type"], resource["id"]
        if not self._is_granted(name, targets, place, now):
            return "permission_denied"
        flag, limit = (self.permissions[name][one] for one in ("requires_flag", "requires_limit"))
        if flag is not None:
            facts = self._facts(user, subject, action, resource, context)
            if flag not in self.flags or not is_on(self.flags[flag], facts):
                return "flag_off"
        return "" if limit is None or self.limits.get(limit) else "limit_reached"

    def _find(self, kind: str, name: str) -> dict[str, Any] | None:
        found = self.subjects.get((kind, name))
        if found is None and kind in ("user", "email") and "@" in name:
            key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
            return self.subjects.get(("email", key))
        return found

    def _is_granted(self, name: str, targets: list[str], place: Place, now: datetime) -> bool:
        places: list[Place] = [None]
        while place in self.resources:
            places.append(place)
            place = self.resources[place][0]
        return any(
            name in permissions and (end is None or now < end)
            for each in places
            for target in targets
            for permissions, end in self.grants.get((target, each), ())
        )

    def _facts(
        self, user: Object, subject: Object, action: Object, resource: Object, context: Object
    ) -> dict[str, Any]:
        """What rules compare, by attribute."""
        _, registered = self.resources.get((resource["type"], resource["id"]), (None, NOTHING))
        parts = {
            "context.": context,
            "context.subject_": subject.get("properties", NOTHING),
            "context.resource_": {**registered, **resource.get("properties", NOTHING)},
            "context.action_": action.get("properties", NOTHING),
        }
        facts = {
            prefix + key: value
            for prefix, values in parts.items()
            for key, value in values.items()
            if isinstance(value, str | int | float)
        }
        facts["context.targetingKey"] = user.get("id")
        if user:
            facts["user.role"] = user["membership"]["role"]
            facts["user.email_domain"] = user["email"].rpartition("@")[2]
            facts |= {f"user.meta_data.{key}": value for key, value in user["meta_data"].items()}
        return facts | self.tenant["facts"]


def _place(found: Mapping[str, str] | None) -> Place:
    return None if found is None else (found["type"], found["id"])


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
