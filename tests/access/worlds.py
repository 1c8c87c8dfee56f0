"""Random worlds for the model, and random questions about them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.access.model import (
    Assignment,
    Flag,
    Key,
    Permission,
    Person,
    Place,
    Resource,
    Role,
    World,
)

PERMISSIONS = [
    Permission("doc:read"),
    Permission("doc:write"),
    Permission("doc:share", requires_flag="sharing"),
    Permission("doc:close", requires_flag="closing"),
    Permission("report:run", requires_limit="reports"),
    Permission("report:send", requires_flag="sharing", requires_limit="mails"),
    Permission("report:lost", requires_flag="unknown"),
    Permission("report:none", requires_limit="unknown"),
]
ACTIONS = [*(one.key for one in PERMISSIONS), "DOC:Read", "users:read", "users:write", "unknown"]
TYPES = ("folder", "doc")
STATES = ["open", "closed", 1, 0, 2.5, True, False, None]
MEMBER_ROLES = ("owner", "admin", "member")


def random_world(random: Random, number: int) -> World:
    """A tenant of a few people, roles, groups and resources; ``number`` makes names unique."""

    def chance(share: float) -> bool:
        return random.random() < share

    def person(each: int) -> Person:
        return Person(
            name=f"idp-{number}-{each}" if each else "",
            email=f"p{number}-{each}@{random.choice(['a', 'b'])}.example",
            is_active=chance(0.9),
            role=random.choice(MEMBER_ROLES[:2] if chance(0.2) else MEMBER_ROLES[2:]),
            is_member=chance(0.9),
            meta_data={"desk": random.choice(STATES)},
        )

    people = [person(each) for each in range(random.randint(1, 6))]
    if chance(0.3):
        people[-1].role = None
    keys = [
        Key(is_valid=chance(0.7), permissions=random.sample(["users:read", "audit:read"], 1))
        for _ in range(random.randint(0, 2))
    ]
    groups = [
        set(random.sample(range(len(people)), random.randint(0, len(people))))
        for _ in range(random.randint(0, 3))
    ]
    roles = _roles(random)
    resources = _resources(random)
    targets = [("person", each) for each, one in enumerate(people) if one.role is not None]
    targets += [("group", each) for each in range(len(groups))]
    targets += [("key", each) for each in range(len(keys))]
    assignments = {}
    for _ in range(random.randint(0, 12) if targets else 0):
        kind, each = random.choice(targets)
        place = random.choice([None, *resources])
        role = random.choice([*roles, "member"])
        one = Assignment(kind, each, role, place, is_expired=chance(0.2))
        assignments[kind, each, role, place] = one
    return World(
        permissions={one.key: one for one in PERMISSIONS},
        is_active=chance(0.9),
        people=people,
        keys=keys,
        groups=groups,
        roles=roles,
        assignments=list(assignments.values()),
        resources=resources,
        flags={
            "sharing": Flag(chance(0.5), override=random.choice([None, None, True, False])),
            "closing": Flag(chance(0.5), when=_condition(random) if chance(0.8) else None),
        },
        limits={"reports": random.choice([None, 0, 3]), "mails": random.choice([0, 1, 1])},
    )


def plain(question: dict[str, Any]) -> dict[str, Any]:
    """The question without properties and context."""
    return {
        part: {name: one for name, one in question[part].items() if name != "properties"}
        for part in ("subject", "action", "resource")
    }


def questions(random: Random, world: World, count: int) -> list[dict[str, Any]]:
    """Questions of AuthZEN about known and unknown subjects and resources."""
    return [_question(random, world) for _ in range(count)]


def _question(random: Random, world: World) -> dict[str, Any]:
    one = random.choice(world.people)
    ways = [("user", one.id), ("user", one.email.upper()), ("email", one.email)]
    if one.name:
        ways += [("user", one.name), ("identity", one.name)]
    ways += [("api_key", key.id) for key in world.keys]
    kind, name = random.choice(ways)
    if random.random() < 0.05:
        kind, name = random.choice([("robot", name), ("user", "nobody"), ("identity", one.email)])
    place = random.choice([*world.resources, ("doc", "unknown"), ("team", "any")])
    question: dict[str, Any] = {
        "subject": {"type": kind, "id": name},
        "action": {"name": random.choice(ACTIONS)},
        "resource": {"type": place[0], "id": place[1]},
    }
    if random.random() < 0.3:
        question["context"] = {"state": random.choice(STATES), "list": [1]}
    for part in ("subject", "resource", "action"):
        if random.random() < 0.15:
            question[part]["properties"] = {"state": random.choice(STATES), "more": {"a": 1}}
    return question


def _roles(random: Random) -> dict[str, Role]:
    """Some that inherit from one that was made before, or from a template."""
    roles: dict[str, Role] = {}
    for each in range(random.randint(1, 5)):
        permissions = random.sample(
            [*(one.key for one in PERMISSIONS), "users:read"], random.randint(0, 3)
        )
        inherits = random.choice([None, None, "member", *roles])
        roles[f"role-{each}"] = Role(f"role-{each}", permissions, inherits)
    return roles


def _resources(random: Random) -> dict[Place, Resource]:
    resources: dict[Place, Resource] = {}
    for each in range(random.randint(0, 8)):
        kind = random.choice(TYPES)
        parent = random.choice([None, *resources])
        attributes = {"state": random.choice(STATES), "tags": ["x"]}
        resources[kind, f"r{each}"] = Resource(parent, attributes if random.random() < 0.7 else {})
    return resources


def _condition(random: Random, depth: int = 0) -> dict[str, Any]:
    kind = random.random()
    if depth < 2 and kind < 0.3:
        parts = [_condition(random, depth + 1) for _ in range(random.randint(1, 3))]
        return {random.choice(["all", "any"]): parts}
    if depth < 2 and kind < 0.4:
        return {"not": _condition(random, depth + 1)}
    state = random.choice(
        ["context.state", "context.resource_state", "context.subject_state", "context.action_state"]
    )
    return random.choice(
        [
            {"attribute": state, "op": "eq", "value": random.choice(STATES[:-1])},
            {"attribute": state, "op": "ne", "value": random.choice(STATES[:-1])},
            {"attribute": state, "op": "in", "value": random.sample(STATES[:-1], 2)},
            {"attribute": state, "op": "exists", "value": random.random() < 0.5},
            {"attribute": state, "op": "gt", "value": 0},
            {"attribute": state, "op": "prefix", "value": "op"},
            {"attribute": "user.role", "op": "in", "value": ["owner", "admin"]},
            {"attribute": "user.email_domain", "op": "eq", "value": "a.example"},
            {"attribute": "user.meta_data.desk", "op": "eq", "value": random.choice(STATES[:-1])},
        ]
    )
