"""Plan presets and prices as YAML: reads the file that :mod:`app.plans.preset_files` applies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from app.core.errors import Entry, Invalid
from app.core.validation.schemas import Schema
from app.plans.price_schemas import PlanPriceSetSchema
from app.plans.schemas import PlanPresetCreateSchema


class UnreadablePlans(Exception):
    """The file has another form; the message is a sentence."""


Read = tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]


def read_plans(text: bytes) -> Read:
    """The presets and the prices of a file; raises UnreadablePlans for another form."""
    try:
        # By way of JSON: a date or another type of YAML alone is refused.
        document = json.loads(json.dumps(yaml.safe_load(text), allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as fault:
        raise UnreadablePlans(
            f"This is not YAML with JSON's types (put dates in quotes): {fault}"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("plans"), list):
        raise UnreadablePlans("The file needs a list named plans.")
    found = []
    for given in document["plans"]:
        if not isinstance(given, dict):
            raise UnreadablePlans("Each plan is a mapping with a name and flags.")
        try:
            found.append(_checked(given, PlanPresetCreateSchema()))
        except Invalid as refusal:
            raise _of_plan(given, _all_told(refusal, PlanPresetCreateSchema())) from None
    names = [plan["name"] for plan in found]
    if len(set(names)) < len(names):
        raise UnreadablePlans("A plan is in the file twice.")
    return found, _read_prices(document.get("prices", []))


def _read_prices(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise UnreadablePlans("The prices are a list.")
    found = []
    for number, price in enumerate(given, start=1):
        try:
            found.append(_checked(price, PlanPriceSetSchema()))
        except Invalid as refusal:
            told = _all_told(refusal, PlanPriceSetSchema())
            raise UnreadablePlans(f"Price {number}: {told}") from None
    return found


def _checked(given: Any, schema: Schema) -> dict[str, Any]:
    """The values, if they satisfy the schema and its rules; raises Invalid."""
    values: dict[str, Any] = schema.load(given)
    errors = [{**entry, "loc": entry["loc"][1:]} for entry in schema.rules(values)]
    if errors:
        raise Invalid(*errors)
    return values


def _all_told(refusal: Invalid, schema: Schema) -> str:
    faults = [(".".join(map(str, one["loc"])), _told(one, schema)) for one in refusal.errors]
    return "; ".join(f"{place}: {told}".removeprefix(": ") for place, told in faults)


def _told(fault: Entry, schema: Schema) -> str:
    """The fault of a value; for a field that does not exist, the fields that do."""
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        return f"no such field; there are: {', '.join(schema.inputs)}"
    told = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "value_error" and isinstance(fault["input"], str) and fault["input"]:
        return f"{told}: {fault['input'][:100]}"
    return told


def _of_plan(given: dict[str, Any], told: str) -> UnreadablePlans:
    """The faults of a plan in a file, which name each flag by its key instead of its number."""
    flags = given.get("flags")
    for number, flag in enumerate(flags if isinstance(flags, list) else ()):
        if isinstance(flag, dict) and "flag_key" in flag:
            told = told.replace(f"flags.{number}.", f"flag {flag['flag_key']}: ")
    return UnreadablePlans(f"Plan {given.get('name', 'without a name')}: {told}")
