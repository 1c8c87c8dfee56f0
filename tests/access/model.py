"""A small model of access decisions, written from the documentation. It uses nothing of the service.

A :class:`World` is a tenant with all that its decisions depend on. ``decide`` answers one question,
and the three ``find_…`` functions ask it for every candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Place = tuple[str, str]  # of a resource: type and id

SERVICE_PERMISSIONS = {
    "owner": {"users:read", "users:write", "audit:read"},
    "admin": {"users:read", "users:write", "audit:read"},
    "member": {"users:read"},
}
"""What the test asks of the templates' permissions."""


@dataclass
class Permission:
    key: str
    requires_flag: str | None = None
    requires_limit: str | None = None


@dataclass
class Person:
    name: str  # the identity provider's; "" for none
    email: str
    is_active: bool = True
    role: str | None = None  # of the membership; None: there is none
    is_member: bool = True  # the membership is active
    meta_data: dict[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass
class Key:
    is_valid: bool = True
    permissions: list[str] = field(default_factory=list)
    id: str = ""


@dataclass
class Role:
    key: str
    permissions: list[str]
    inherits: str | None = None


@dataclass
class Assignment:
    kind: str  # "person", "group" or "key"
    number: int
    role: str
    place: Place | None = None
    is_expired: bool = False


@dataclass
class Resource:
    parent: Place | None
    attributes: dict[str, Any]


@dataclass
class Flag:
    """``when`` makes it the opposite of ``value``. The model does not know ``rules``."""

    value: bool
    when: dict[str, Any] | None = None
    override: bool | None = None
    rules: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class World:
    permissions: dict[str, Permission]
    is_active: bool
    people: list[Person]
    keys: list[Key]
    groups: list[set[int]]  # numbers of people
    roles: dict[str, Role]
    assignments: list[Assignment]
    resources: dict[Place, Resource]
    flags: dict[str, Flag]
    limits: dict[str, int | None]  # what is left; None: unlimited

    def decide(self, question: dict[str, Any]) -> bool:
        """Whether the subject may do it."""
        subject = self._subject(question["subject"])
        action = question["action"]["name"].lower()
        if subject is None or not self.is_active or not self._counts(subject):
            return False
        place = (question["resource"]["type"], question["resource"]["id"])
        if not any(
            action in self._permissions_of(role) and self._covers(granted, place)
            for role, granted in self._grants(subject)
        ) and not (isinstance(subject, Key) and action in subject.permissions):
            return False
        permission = self.permissions.get(action)
        if permission is None:
            return True
        if permission.requires_flag and not self._is_on(
            permission.requires_flag, subject, question
        ):
            return False
        if permission.requires_limit is None:
            return True
        left = self.limits.get(permission.requires_limit, 0)
        return left is None or left > 0

    def find_subjects(self, question: dict[str, Any]) -> set[str]:
        """The people who may do it, by the identity provider's id or else their own."""
        return {
            person.name or person.id
            for person in self.people
            if self.decide({**question, "subject": {"type": "user", "id": person.id}})
        }

    def find_resources(self, question: dict[str, Any]) -> set[str]:
        """The registered resources of the type on which the subject may do it."""
        return {
            place[1]
            for place in self.resources
            if place[0] == question["resource"]["type"]
            and self.decide({**question, "resource": {"type": place[0], "id": place[1]}})
        }

    def find_actions(self, question: dict[str, Any]) -> set[str]:
        """The product permissions that the subject has on the resource."""
        return {
            key for key in self.permissions if self.decide({**question, "action": {"name": key}})
        }

    def _subject(self, subject: dict[str, Any]) -> Person | Key | None:
        kind, name = subject["type"], subject["id"]
        if kind == "api_key":
            return next((one for one in self.keys if one.id == name), None)
        ways = {"user": ("id", "name", "email"), "identity": ("name",), "email": ("email",)}
        for way in ways.get(kind, ()):
            for person in self.people:
                known = getattr(person, way)
                if known and known == (name.lower() if way == "email" else name):
                    return person
        return None

    def _counts(self, subject: Person | Key) -> bool:
        if isinstance(subject, Key):
            return subject.is_valid
        return subject.is_active and subject.role is not None and subject.is_member

    def _grants(self, subject: Person | Key) -> list[tuple[str, Place | None]]:
        """The roles that a subject has, each with the resource that it is limited to."""
        found: list[tuple[str, Place | None]] = []
        if isinstance(subject, Person) and subject.role is not None:
            found.append((subject.role, None))
        for one in self.assignments:
            if one.is_expired:
                continue
            if one.kind == "key":
                holds = subject is self.keys[one.number]
            elif one.kind == "person":
                holds = subject is self.people[one.number]
            else:
                holds = any(subject is self.people[each] for each in self.groups[one.number])
            if holds:
                found.append((one.role, one.place))
        return found

    def _permissions_of(self, key: str) -> set[str]:
        found: set[str] = set()
        following: str | None = key
        while following is not None:
            if following == "owner":
                found |= self.permissions.keys()
            found |= SERVICE_PERMISSIONS.get(following, set())
            role = self.roles.get(following)
            found |= set(role.permissions) if role else set()
            following = role.inherits if role else None
        return found

    def _covers(self, granted: Place | None, place: Place) -> bool:
        if granted is None:
            return True
        following: Place | None = place
        while following in self.resources:
            if following == granted:
                return True
            following = self.resources[following].parent
        return False

    def _is_on(self, key: str, subject: Person | Key, question: dict[str, Any]) -> bool:
        flag = self.flags.get(key)
        if flag is None:
            return False
        if flag.override is not None:
            return flag.override
        if flag.when is None:
            return flag.value
        facts = self._facts(subject, question)
        return flag.value is not holds(flag.when, facts)

    def _facts(self, subject: Person | Key, question: dict[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for name, value in question.get("context", {}).items():
            facts[f"context.{name}"] = value
        place = (question["resource"]["type"], question["resource"]["id"])
        registered = self.resources[place].attributes if place in self.resources else {}
        for prefix, values in (
            ("subject", question["subject"].get("properties", {})),
            ("resource", {**registered, **question["resource"].get("properties", {})}),
            ("action", question["action"].get("properties", {})),
        ):
            for name, value in values.items():
                facts[f"context.{prefix}_{name}"] = value
        if isinstance(subject, Person):
            facts["user.role"] = subject.role
            facts["user.email_domain"] = subject.email.partition("@")[2]
            facts.update({f"user.meta_data.{name}": one for name, one in subject.meta_data.items()})
        return {name: one for name, one in facts.items() if not isinstance(one, (dict, list))}


def holds(when: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Whether a condition of a rule holds."""
    if "all" in when:
        return all(holds(one, facts) for one in when["all"])
    if "any" in when:
        return any(holds(one, facts) for one in when["any"])
    if "not" in when:
        return not holds(when["not"], facts)
    have, wanted = facts.get(when["attribute"]), when["value"]
    match when["op"]:
        case "eq":
            return same(have, wanted)
        case "ne":
            return not same(have, wanted)
        case "in":
            return any(same(have, one) for one in wanted)
        case "exists":
            return (have is not None) == wanted
        case "gt":
            return type(have) in (int, float) and have > wanted
        case "prefix":
            return isinstance(have, str) and have[: len(wanted)] == wanted
    raise AssertionError(when)


def same(left: Any, right: Any) -> bool:
    """Equal JSON: true is not 1."""
    return (isinstance(left, bool), left) == (isinstance(right, bool), right)
