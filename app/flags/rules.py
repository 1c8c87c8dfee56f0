"""Rules of flags: the first that matches gives the value.

Buckets are those of flagd's ``fractional``, so that :func:`to_flagd` evaluates alike.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import cbor2
import mmh3

from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.json_text import Json
from app.plans.flag_types import fits
from app.plans.models import Flag
from app.plans.rule_conditions import MOMENTS, Condition, Op, Test, compiled, moment_of

log = logging.getLogger(__name__)

Rule = Mapping[str, Json]
RULE_FAULTS = (AttributeError, LookupError, TypeError, ValueError, OverflowError)
"""What a rule raises that is not valid. It has been stored by other means than a request."""
Targeting = dict[str, Any]  # JSON logic

BUCKETS = 100_000  # thousandths of a percent
BUCKET_BY = {"tenant": "tenant.id", "user": "context.targetingKey"}

FIND_USER = Statement(
    "users.find_facts",
    "SELECT u.email, u.meta_data, m.role FROM users u"
    " JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id AND m.is_active"
    " WHERE u.tenant_id = :tenant_id"
    " AND (u.id = CAST(:id AS uuid) OR u.idp_user_id = :name OR u.email_key = :email_key)"
    " ORDER BY u.id = CAST(:id AS uuid) DESC, u.idp_user_id = :name DESC, u.id LIMIT 1",
)


class Facts(dict[str, Json]):
    """What rules compare: attribute -> value, None where it is missing.

    The user is read when a rule first asks for one of its attributes.
    """

    def __init__(self, tenant_id: UUID, tenant: Mapping[str, Json], context: Mapping[str, Json]):
        super().__init__({f"tenant.{name}": value for name, value in tenant.items()})
        self._tenant_id = tenant_id
        self["tenant.id"] = str(tenant_id)
        self._add("tenant.meta_data", tenant["meta_data"])
        self._add("context", context)

    def __missing__(self, attribute: str) -> Json:
        if attribute.startswith("user.") and "user" not in self:
            self["user"] = user = self._find_user()
            self._add("user", user)
            self._add("user.meta_data", user.get("meta_data", {}))
            return self.get(attribute)
        return None

    def _add(self, prefix: str, values: Mapping[str, Json]) -> None:
        self.update((f"{prefix}.{name}", value) for name, value in values.items())

    def _find_user(self) -> dict[str, Json]:
        name = self["context.targetingKey"]
        if not name or "\0" in name:
            return {}
        known = {"id": id_or_none(name), "name": name, "email_key": name.casefold()}
        found = FIND_USER.first(tenant_id=self._tenant_id, **known)
        if found is None:
            return {}
        domain = found.email.rpartition("@")[2].lower()
        return {"role": found.role, "email_domain": domain, "meta_data": found.meta_data}


def compile_rule(rule: Rule, flag: Flag) -> Test:
    """A function that tells whether the rule matches; a RULE_FAULTS of a rule that is not valid."""
    if not fits(flag["flag_type"], rule["value"]):
        raise ValueError("The rule's value does not have the flag's type.")
    when = compiled(rule.get("when", {"all": []}))
    if "rollout" not in rule:
        return when
    attribute, salt, weight = _rollout(rule, flag["flag_key"])

    def test(facts: Mapping[str, Json]) -> bool:
        if not when(facts):
            return False
        name = facts[attribute]
        return bool(name) and _bucket(salt + name) < weight

    return test


class CompiledFlag(NamedTuple):
    """A preset's flag, and its rules with their tests; None if one of them is not valid."""

    flag: Flag
    rules: Sequence[tuple[Rule, Test]] | None

    @classmethod
    def of(cls, flag: Flag) -> CompiledFlag:
        try:
            return cls(flag, [(rule, compile_rule(rule, flag)) for rule in flag.get("rules", ())])
        except RULE_FAULTS:
            log.exception("flag_rule_not_valid", extra={"flag_key": flag["flag_key"]})
            return cls(flag, None)

    def first_match(self, facts: Facts) -> Rule | None:
        """The rule that decides, or None. Raises one of RULE_FAULTS for a rule that is not valid."""
        if self.rules is None:
            raise ValueError("A rule of the flag is not valid.")
        return next((rule for rule, test in self.rules if test(facts)), None)


def bucket(rule: Rule, facts: Mapping[str, Json], flag_key: str) -> tuple[int | None, str]:
    """The bucket of a rollout, from 0 to 99,999, and its salt.

    The bucket is None without the tenant or user to put in.
    """
    attribute, salt, _ = _rollout(rule, flag_key)
    name = facts[attribute]
    return _bucket(salt + name) if name else None, salt


def _rollout(rule: Rule, flag_key: str) -> tuple[str, str, int]:
    """The attribute that is put into a bucket, the salt, and how many buckets are inside."""
    rollout = rule["rollout"]
    salt, weight = rollout.get("salt", flag_key), round(rollout["percent"] * BUCKETS / 100)
    return BUCKET_BY[rollout.get("by", "tenant")], salt, weight


def _bucket(text: str) -> int:
    return (mmh3.hash(cbor2.dumps(text), signed=False) * BUCKETS) >> 32


def to_flagd(rule: Rule, flag_key: str) -> Targeting:
    """The condition of a valid rule as flagd's targeting.

    The context has ``tenant_id``, and ``tenant`` and ``user``, objects of the attributes. Times are
    compared as text, so they have to be written like ``2026-01-31T12:00:00Z``.
    """
    parts = [_logic(rule["when"])] if "when" in rule else []
    if "rollout" in rule:
        attribute, salt, weight = _rollout(rule, flag_key)
        by = _var(attribute)
        shares = [["in", weight], ["out", BUCKETS - weight]]
        parts.append({"!!": [by]})
        parts.append({"===": [{"fractional": [{"cat": [salt, by]}, *shares]}, "in"]})
    return _all(parts)


def _logic(condition: Condition) -> Targeting:
    if "all" in condition:
        return _all([_logic(each) for each in condition["all"]])
    if "any" in condition:
        return {"or": [_logic(each) for each in condition["any"]]}
    if "not" in condition:
        return {"!": [_logic(condition["not"])]}
    have, value = _var(condition["attribute"]), condition["value"]
    is_text = {"starts_with": [have, ""]}
    match condition["op"]:
        case Op.EQ:
            return _equals(have, value)
        case Op.NE:
            return {"!": [_equals(have, value)]}
        case Op.IN | Op.NOT_IN as op:
            plain = {"in": [have, [one for one in value if one not in (0, 1)]]}
            found = {"or": [plain, *(_equals(have, one) for one in value if one in (0, 1))]}
            return found if op == Op.IN else {"!": [found]}
        case Op.EXISTS:
            return {"!==" if value else "===": [have, None]}
        case Op.PREFIX:
            return {"starts_with": [have, value]}
        case Op.SUFFIX:
            return {"ends_with": [have, value]}
        case Op.SEMVER_GT | Op.SEMVER_LT as op:
            sign = ">" if op == Op.SEMVER_GT else "<"
            return _all([is_text, {"sem_ver": [have, sign, value]}])
        case op if op in MOMENTS:
            text = moment_of(value).isoformat(timespec="seconds").replace("+00:00", "Z")
            return _all([is_text, {"<" if op == Op.BEFORE else ">": [have, text]}])
    sign = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}[condition["op"]]
    is_number: list[Targeting] = [
        {"!==": [have, None]},
        {"!": [is_text]},
        {"===": [{"+": [have]}, have]},
    ]
    return _all([*is_number, _is_no_boolean(have), {sign: [have, value]}])


def _equals(have: Targeting, value: Json) -> Targeting:
    """Equality; for Python's evaluator true is 1, and false is 0."""
    strict = {"===": [have, value]}
    if isinstance(value, bool):
        return {"and": [strict, {"!": [_is_no_boolean(have)]}]}
    return {"and": [strict, _is_no_boolean(have)]} if value in (0, 1) else strict


def _is_no_boolean(have: Targeting) -> Targeting:
    return {"!": [{"in": [{"cat": [have]}, ["true", "false", "True", "False"]]}]}


def _all(each: list[Targeting]) -> Targeting:
    return each[0] if len(each) == 1 else {"and": each}


def _var(attribute: str) -> Targeting:
    return {"var": "tenant_id" if attribute == "tenant.id" else attribute.removeprefix("context.")}
