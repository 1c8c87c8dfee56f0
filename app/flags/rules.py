"""Rules of flags: the first that matches gives the value.

Buckets are those of flagd's ``fractional``, so that :mod:`app.flags.targeting` evaluates alike.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import cbor2
import mmh3

from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.json_text import Json
from app.plans.flag_types import fits
from app.plans.models import Flag
from app.plans.rule_conditions import Test, comparisons, compiled

log = logging.getLogger(__name__)

Rule = Mapping[str, Json]
RULE_FAULTS = (AttributeError, LookupError, TypeError, ValueError, OverflowError)
"""What a rule raises that is not valid. It has been stored by other means than a request."""

BUCKETS = 100_000  # thousandths of a percent
BUCKET_BY = {"tenant": "tenant.id", "user": "context.targetingKey"}

COMPARED_FACTS = """(
    SELECT json_object_agg(fact.key, CASE fact.key WHEN 'meta_data' THEN coalesce((
        SELECT json_object_agg(name, fact.value -> name)
        FROM unnest(CAST(:names AS text[])) name
    ), '{}') ELSE fact.value END) FROM json_each(plan.facts) fact
)"""
"""What rules compare of a tenant; of its metadata, which can be large, only these keys."""
FIND_USER = Statement(
    "users.find_facts",
    "SELECT u.email, u.meta_data, m.role FROM users u"
    " JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id AND m.is_active"
    " WHERE u.tenant_id = :tenant_id"
    " AND (u.id = CAST(:id AS uuid) OR u.idp_user_id = :name OR u.email_key = :email_key)"
    " ORDER BY u.id = CAST(:id AS uuid) DESC, u.idp_user_id = :name DESC, u.id LIMIT 1",
)


class Facts(dict[str, Json]):
    """The values that rules compare: attribute -> value, None if it is missing.

    The user is read when a rule first asks for one of its attributes, unless ``user`` has them
    (see :func:`user_facts`).
    """

    def __init__(
        self,
        tenant_id: UUID,
        tenant: Mapping[str, Json],
        context: Mapping[str, Json],
        user: Mapping[str, Json] | None = None,
    ):
        super().__init__({f"tenant.{name}": value for name, value in tenant.items()})
        self._tenant_id = tenant_id
        self["tenant.id"] = str(tenant_id)
        self._add("tenant.meta_data", tenant["meta_data"])
        self._add("context", context)
        if user is not None:
            self._add_user(user)

    def __missing__(self, attribute: str) -> Json:
        if attribute.startswith("user.") and "user" not in self:
            self._add_user(self._find_user())
            return self.get(attribute)
        return None

    def _add_user(self, user: Mapping[str, Json]) -> None:
        self["user"] = user
        self._add("user", user)
        self._add("user.meta_data", user.get("meta_data", {}))

    def _add(self, prefix: str, values: Mapping[str, Json]) -> None:
        self.update((f"{prefix}.{name}", value) for name, value in values.items())

    def _find_user(self) -> dict[str, Json]:
        name = self["context.targetingKey"]
        if not name or "\0" in name:
            return {}
        known = {"id": id_or_none(name), "name": name, "email_key": name.casefold()}
        found = FIND_USER.first(tenant_id=self._tenant_id, **known)
        return {} if found is None else user_facts(found.role, found.email, found.meta_data)


def user_facts(role: str, email: str, meta_data: Mapping[str, Json]) -> dict[str, Json]:
    """The attributes that rules compare of a user with an active membership."""
    domain = email.rpartition("@")[2].lower()
    return {"role": role, "email_domain": domain, "meta_data": meta_data}


def compared(flags: Iterable[Flag]) -> set[str]:
    """The attributes of the tenant that rules compare; those of its metadata by their keys."""
    return {
        name.removeprefix("tenant.meta_data.")
        for flag in flags
        for rule in flag.get("rules", ())
        for condition, _ in comparisons(rule.get("when", {}))
        if (name := str(condition["attribute"])).startswith("tenant.")
    }


def compile_rule(rule: Rule, flag: Flag) -> Test:
    """A test whether the rule matches; raises one of :data:`RULE_FAULTS` for an invalid rule."""
    if not fits(flag["flag_type"], rule["value"]):
        raise ValueError("The rule's value does not have the flag's type.")
    when = compiled(rule.get("when", {"all": []}))
    if "rollout" not in rule:
        return when
    attribute, salt, weight = rollout_of(rule, flag["flag_key"])

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


def bucket(rule: Rule, facts: Mapping[str, Json], flag_key: str) -> tuple[float | None, str]:
    """The bucket of a rollout in percent, None without the tenant or user, and its salt."""
    attribute, salt, _ = rollout_of(rule, flag_key)
    name = facts[attribute]
    return _bucket(salt + name) * 100 / BUCKETS if name else None, salt


def rollout_of(rule: Rule, flag_key: str) -> tuple[str, str, int]:
    """The attribute that is put into a bucket, the salt, and how many buckets are inside."""
    rollout = rule["rollout"]
    salt, weight = rollout.get("salt", flag_key), round(rollout["percent"] * BUCKETS / 100)
    return BUCKET_BY[rollout.get("by", "tenant")], salt, weight


def _bucket(text: str) -> int:
    return (mmh3.hash(cbor2.dumps(text), signed=False) * BUCKETS) >> 32
