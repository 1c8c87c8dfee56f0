"""The rules of a preset's flag in requests. They are stored as they were sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from app.core.errors import Entry, Invalid, Location, value_error
from app.core.json_text import Json
from app.core.validation.fields import AnyJson, Choice, ListOf, Name, Nested, Scalar, Str
from app.core.validation.messages import entries
from app.core.validation.schemas import Schema
from app.plans.flag_types import MAX_VALUE_BYTES, FlagType, is_too_long, type_errors
from app.plans.rule_conditions import ATTRIBUTE_PATTERN, NUMBERS, PARSED, Op, comparisons

MAX_RULES = 32
MAX_CONDITIONS = 32
MAX_LISTED = 1000
COMPARED = {"attribute", "op", "value"}
FORMS = "a condition has `attribute`, `op` and `value`, or only one of `all`, `any` and `not`"
TOO_MANY = f"a rule can have at most {MAX_CONDITIONS} conditions, nested ones included"

NUMBER = core_schema.float_schema(strict=True, allow_inf_nan=False)
TEXT = core_schema.str_schema(strict=True, max_length=1024)
ANY = core_schema.union_schema(
    [TEXT, core_schema.bool_schema(strict=True), NUMBER],
    custom_error_type="scalar_type",
    custom_error_message="Input should be a text of at most 1024 characters, a number or a boolean",
)
PART = core_schema.str_schema(strict=True, min_length=1, max_length=1024)


class BucketBy(StrEnum):
    """What a rollout counts: tenants with all their people, or single users."""

    TENANT = "tenant"
    USER = "user"


class SentSchema(Schema):
    """A schema whose values stay as they were sent."""

    def load(self, data: object, *, unknown: str | None = None) -> dict[str, Any]:  # type: ignore[override]  # as its base
        super().load(data, unknown=unknown)
        sent: dict[str, Any] = data  # type: ignore[assignment]  # an object, or it was refused
        if errors := list(self.faults(sent)):
            raise Invalid(*errors)
        return sent

    def faults(self, sent: Mapping[str, Json]) -> Iterator[Entry]:
        """The errors across valid fields, each with its ``loc`` relative to the object."""
        return iter(())


NESTED = {"minItems": 1, "maxItems": MAX_CONDITIONS}


EXAMPLE = {"attribute": "tenant.plan", "op": "in", "value": ["growth", "pro"]}


class ConditionSchema(SentSchema):
    """One comparison, or one of `all`, `any` and `not` of further conditions."""

    examples = {**EXAMPLE, "all_": [EXAMPLE], "any_": [EXAMPLE], "not_": EXAMPLE}
    descriptions = {
        "attribute": "`tenant.` with `plan`, `slug`, `region`, `country`, `age_days` or"
        " `meta_data.KEY`; `user.` with `role`, `email_domain` or `meta_data.KEY`; `context.KEY`.",
        "op": "How the attribute is compared with the value.",
        "value": "A list for `in` and `not_in`, a boolean for `exists`.",
        "all_": "All of these hold.",
        "any_": "At least one of these holds.",
        "not_": "This does not hold.",
    }

    attribute = Str(pattern=ATTRIBUTE_PATTERN)
    op = Choice(Op)
    value = AnyJson()
    all_ = ListOf(Nested(lambda: ConditionSchema()), data_key="all", metadata=NESTED)
    any_ = ListOf(Nested(lambda: ConditionSchema()), data_key="any", metadata=NESTED)
    not_ = Nested(lambda: ConditionSchema(), data_key="not")

    def faults(self, sent: Mapping[str, Json]) -> Iterator[Entry]:
        if sent.keys() == COMPARED:
            try:
                schema = _value_schema(sent["attribute"], Op(sent["op"]))
                SchemaValidator(schema).validate_python(sent["value"])
            except ValidationError as fault:
                yield from entries(fault, "value")
        elif len(sent) != 1 or sent.keys() & COMPARED:
            yield value_error((), FORMS, sent)


class Percent(Scalar):
    """A number from 0 to 100."""

    accepts = core_schema.float_schema(strict=True, allow_inf_nan=False, ge=0, le=100)
    keywords = {"type": "number", "minimum": 0, "maximum": 100, "examples": [10.0]}


class RolloutSchema(SentSchema):
    """A part of the tenants or users. Whoever is inside stays so while `percent` grows."""

    examples = {"by": "tenant", "salt": "checkout-2026"}

    by = Choice(BucketBy, description="By default `tenant`.")
    percent = Percent(required=True, description="Three decimals count.")
    salt = Str(min_length=1, max_length=128, description="By default the flag's key.")


class When(Nested):
    """The condition of a rule; it is counted before it is read, so that it cannot nest too deep."""

    def from_json(self, value: Any) -> Any:
        if _count(value) > MAX_CONDITIONS:
            raise Invalid(value_error((), TOO_MANY))
        return super().from_json(value)


class RuleSchema(SentSchema):
    """A rule gives its value if `when` holds, and to the part that `rollout` names."""

    examples = {"name": "growth-first", "value": True}

    name = Name(required=True, min_length=1, description="A flag has each name once.")
    when = When(ConditionSchema, description="The condition.")
    rollout = Nested(RolloutSchema, description="The part; not for a limit.")
    value = AnyJson(required=True, description="Of the flag's type.")

    def faults(self, sent: Mapping[str, Json]) -> Iterator[Entry]:
        if not sent.keys() & {"when", "rollout"}:
            yield value_error((), "a rule needs `when`, `rollout` or both", sent)
        if is_too_long(sent["value"]):
            reason = f"a flag's value can have at most {MAX_VALUE_BYTES} bytes of JSON"
            yield value_error(("value",), reason)


class Rules(ListOf):
    """A flag's rules. An answer has them as they are stored."""

    def to_json(self, value: Any) -> Any:
        return value


def rule_errors(flag: Mapping[str, Json], loc: Location) -> Iterator[Entry]:
    """The errors of a flag's valid rules: names, types of values, and what limits do not have."""
    seen: set[str] = set()
    for index, rule in enumerate(flag.get("rules", ())):
        place, name = [*loc, index], rule["name"]
        if name in seen:
            yield value_error([*place, "name"], "a flag can have each rule only once", name)
        seen.add(name)
        yield from type_errors(flag["flag_type"], rule["value"], [*place, "value"])
        if flag["flag_type"] is FlagType.LIMIT:
            yield from _limit_faults(rule, place)


def _limit_faults(rule: Mapping[str, Json], loc: Location) -> Iterator[Entry]:
    if "rollout" in rule:
        yield value_error([*loc, "rollout"], "a limit cannot have a rollout", rule["rollout"])
    for condition, place in comparisons(rule.get("when", {}), [*loc, "when"]):
        attribute, op = condition["attribute"], condition["op"]
        if not attribute.startswith("tenant."):
            reason = "a limit's rules can use attributes of the tenant only"
            yield value_error([*place, "attribute"], reason, attribute)
        if op in PARSED:
            yield value_error([*place, "op"], "a limit's rules cannot use this", op)


def _count(given: object) -> int:
    """The conditions in JSON that is not checked yet, or more than are allowed."""
    found, waiting = 0, [given]
    while waiting and found <= MAX_CONDITIONS:
        each = waiting.pop()
        if isinstance(each, dict):
            found += 1
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def _value_schema(attribute: str, op: Op) -> CoreSchema:
    """The values that an attribute can be compared with."""
    is_any = attribute.startswith("context.") or ".meta_data." in attribute
    scalar: CoreSchema = NUMBER if attribute == "tenant.age_days" else ANY if is_any else TEXT
    match op:
        case Op.EQ | Op.NE:
            return scalar
        case Op.IN | Op.NOT_IN:
            return core_schema.list_schema(scalar, strict=True, min_length=1, max_length=MAX_LISTED)
        case Op.EXISTS:
            return core_schema.bool_schema(strict=True)
        case Op.PREFIX | Op.SUFFIX:
            return PART
    if op in NUMBERS:
        return NUMBER
    return core_schema.no_info_after_validator_function(PARSED[op], PART)
