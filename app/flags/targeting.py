"""Rules of flags as flagd's targeting, which is JSON logic."""

from __future__ import annotations

from typing import Any

from app.core.json_text import Json
from app.flags.rules import BUCKETS, Rule, rollout_of
from app.plans.rule_conditions import MOMENTS, Condition, Op, moment_of, wanted_of

Targeting = dict[str, Any]

TIMES = ("0000-00-00T00:00:00Z", "0000-00-00T00:00:00.000Z")  # 0 is any digit
BOUNDS = (
    *((0, "0001", "9999"), (5, "01", "12"), (8, "01", "31")),
    *((11, "00", "23"), (14, "00", "59"), (17, "00", "59")),
)
"""The position of a part of a time, its least and its greatest value."""


def to_flagd(rule: Rule, flag_key: str) -> Targeting:
    """The condition of a valid rule as flagd's targeting.

    The context has ``tenant_id``, and ``tenant`` and ``user``, objects of the attributes. Times are
    compared as text, and have to be written like :data:`TIMES`.
    """
    parts = [_logic(rule["when"])] if "when" in rule else []
    if "rollout" in rule:
        attribute, salt, weight = rollout_of(rule, flag_key)
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
    have, value = _var(condition["attribute"]), wanted_of(condition)
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
            sign = "<" if op == Op.BEFORE else ">"
            return _all([is_text, _is_moment(have), {sign: [have, text]}])
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


def _is_moment(have: Targeting) -> Targeting:
    """Whether a text is written as one of ``TIMES``. Each month may have 31 days."""
    forms = []
    for form in TIMES:
        each = [(at, one, "9" if one == "0" else one) for at, one in enumerate(form)]
        parts = [
            {"<=": [least, {"substr": [have, at, len(least)]}, most]}
            for at, least, most in (*each, *BOUNDS)
        ]
        forms.append(_all([*parts, {"===": [{"substr": [have, len(form)]}, ""]}]))
    return {"or": forms}


def _is_no_boolean(have: Targeting) -> Targeting:
    return {"!": [{"in": [{"cat": [have]}, ["true", "false", "True", "False"]]}]}


def _all(each: list[Targeting]) -> Targeting:
    return each[0] if len(each) == 1 else {"and": each}


def _var(attribute: str) -> Targeting:
    return {"var": "tenant_id" if attribute == "tenant.id" else attribute.removeprefix("context.")}
