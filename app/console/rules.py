"""The rules of a flag as sentences, and the inputs that make them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson
from werkzeug.datastructures import MultiDict

from app.console import words
from app.console.fields import DRAFT, Field, Inputs, Sent
from app.core.json_text import Json

ATTRIBUTES = {
    "tenant.plan": "the tenant's plan", "tenant.slug": "the tenant's slug",
    "tenant.region": "the tenant's region", "tenant.country": "the tenant's country",
    "tenant.age_days": "the tenant's age in days", "tenant.meta_data.": "the tenant's field",
    "user.role": "the user's role", "user.email_domain": "the user's e-mail domain",
    "user.meta_data.": "the user's field", "context.": "the context's",
}  # fmt: skip
"""An attribute that ends with a full stop needs a name after it."""
OPERATORS = {
    "eq": "is", "ne": "is not", "in": "is one of", "not_in": "is none of",
    "gt": "is more than", "ge": "is at least", "lt": "is less than", "le": "is at most",
    "prefix": "begins with", "suffix": "ends with", "after": "is after", "before": "is before",
    "semver_gt": "is a version after", "semver_lt": "is a version before",
    "exists": "is set", "absent": "is not set",
}  # fmt: skip
LISTS = ("in", "not_in")
NUMERIC = ("gt", "ge", "lt", "le")
OF_RULE = ("name", "join", "kept", "percent", "by", "salt", "value")
OF_CONDITION = ("attribute", "key", "op", "text")

VALUE = Field("rules_value", "Value")

Row = dict[str, Json]  # the texts of OF_RULE, and `conditions` with those of OF_CONDITION


def sentence(rule: Mapping[str, Json]) -> str:
    """Such as ``If the tenant's plan is pro, for 10 % of tenants: on``."""
    parts = [f"if {_told(rule['when'])}"] if "when" in rule else []
    if rollout := rule.get("rollout"):
        lead = "for " if parts else ""
        parts.append(f"{lead}{rollout['percent']:g} % of {rollout.get('by', 'tenant')}s")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}: {words.brief(rule['value'])}"


def _told(condition: Mapping[str, Json], *, is_inner: bool = False) -> str:
    for name, word in (("all", " and "), ("any", " or ")):
        if name in condition:
            text = word.join(_told(each, is_inner=True) for each in condition[name])
            return f"({text})" if is_inner else text
    if "not" in condition:
        return f"not {_told(condition['not'], is_inner=True)}"
    row = _condition_row(condition)
    name = f"{ATTRIBUTES[row['attribute']]} {row['key']}".strip()
    return f"{name} {OPERATORS[row['op']]} {row['text']}".strip()


@dataclass(frozen=True)
class Rules(Field):
    """The rules of one flag. ``value`` is the field in which a rule's value is entered."""

    value: Field = VALUE
    has_rollouts: bool = True
    attributes = ATTRIBUTES
    operators = OPERATORS

    def read(self, form: Sent) -> Json:
        return [self._rule(row) for row in self.typed(form)]

    def typed(self, form: Sent) -> Json:
        """The rows, after what the pressed button does to them."""
        columns = (form.getlist(f"rules_{name}") for name in OF_RULE)
        rows = [dict(zip(OF_RULE, texts, strict=True)) for texts in zip(*columns, strict=False)]
        conditions: list[list[Row]] = [[] for _ in rows]
        cells = (form.getlist(f"rules_{name}") for name in ("rule", *OF_CONDITION))
        for number, *texts in zip(*cells, strict=False):
            row = dict(zip(OF_CONDITION, texts, strict=True))
            if row["attribute"] and number.isdecimal() and int(number) < len(rows):
                conditions[int(number)].append(row)
        rows = [{**row, "conditions": each} for row, each in zip(rows, conditions, strict=True)]
        action, _, place = form.get(DRAFT, "").partition(" ")
        at = int(place) if place.isdecimal() else len(rows)
        if action == "add":
            rows.append(self._row({"name": _new_name(rows), "value": None}))
        elif at < len(rows) and action in ("up", "down", "remove"):
            moved = rows.pop(at)
            if action != "remove":
                rows.insert(max(0, at - 1) if action == "up" else at + 1, moved)
        return rows

    def shown(self, value: Json) -> Json:
        return [self._row(rule) for rule in value or ()]

    def inputs(self, shown: Json) -> Inputs:
        cells = [(str(at), one) for at, row in enumerate(shown) for one in row["conditions"]]
        return {
            **{f"rules_{name}": [row[name] for row in shown] for name in OF_RULE},
            "rules_rule": [at for at, _ in cells],
            **{f"rules_{name}": [one[name] for _, one in cells] for name in OF_CONDITION},
        }

    def place(self, loc: Sequence[str]) -> str:
        """Such as ``Rule 2``."""
        return f"Rule {int(loc[0]) + 1}" if loc[0].isdecimal() else super().place(loc)

    def told(self, row: Row) -> str:
        """The row as a sentence; empty while it cannot be read."""
        with suppress(ValueError, KeyError):
            return sentence(self._rule(row))
        return ""

    def _row(self, rule: Mapping[str, Json]) -> Row:
        when, rollout = rule.get("when", {}), rule.get("rollout", {})
        join = "any" if "any" in when else "all"
        flat = [one for one in when.get(join, [when]) if "attribute" in one]
        row: Row = {
            "name": rule["name"],
            "join": join,
            "kept": "",
            "percent": f"{rollout['percent']:g}" if rollout else "",
            "by": rollout.get("by", "tenant"),
            "salt": rollout.get("salt", ""),
            "value": str(self.value.shown(rule["value"])),
            "conditions": [_condition_row(one) for one in flat],
        }
        if _when(row) != when:  # conditions in conditions stay as they are
            row |= {"kept": json.dumps(when), "conditions": []}
        return row

    def _rule(self, row: Row) -> Json:
        rule: dict[str, Json] = {"name": row["name"].strip()}
        if when := _when(row):
            rule["when"] = when
        if row["percent"].strip():
            rule["rollout"] = {"percent": _json(row["percent"].strip(" %"))}
            rule["rollout"] |= {"by": row["by"]} if row["by"] != "tenant" else {}
            rule["rollout"] |= {"salt": row["salt"]} if row["salt"] else {}
        value = self.value.read(MultiDict({self.value.name: row["value"]}))
        return {**rule, "value": value}


def _when(row: Row) -> Json:
    """The condition of a row; empty if there is none."""
    if row["kept"]:
        return json.loads(row["kept"])
    found = [_condition(one) for one in row["conditions"]]
    return {row["join"]: found} if len(found) > 1 else found[0] if found else {}


def _condition(row: Row) -> Json:
    op, attribute = row["op"], row["attribute"]
    if attribute.endswith("."):
        attribute += row["key"].strip()
    if op in ("exists", "absent"):
        return {"attribute": attribute, "op": "exists", "value": op == "exists"}
    texts = [text.strip() for text in (row["text"].split(",") if op in LISTS else [row["text"]])]
    values = [_scalar(attribute, op, text) for text in texts if text or op not in LISTS]
    return {"attribute": attribute, "op": op, "value": values if op in LISTS else values[0]}


def _condition_row(condition: Mapping[str, Json]) -> Row:
    attribute, op, value = (condition[name] for name in ("attribute", "op", "value"))
    kind = next(one for one in ATTRIBUTES if attribute.startswith(one))
    if op == "exists":
        op, value = ("exists" if value else "absent"), []
    texts = [_text(attribute, op, one) for one in (value if isinstance(value, list) else [value])]
    return {
        "attribute": kind,
        "key": attribute.removeprefix(kind),
        "op": op,
        "text": ", ".join(texts),
    }


def _scalar(attribute: str, op: str, text: str) -> Json:
    """A text or, where the condition allows it, a number or a boolean."""
    is_any = attribute.startswith("context.") or ".meta_data." in attribute
    if is_any and len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    return _json(text) if is_any or op in NUMERIC or attribute == "tenant.age_days" else text


def _json(text: str) -> Json:
    """The number or the boolean, else the text, which the API may refuse."""
    with suppress(ValueError):
        if isinstance(found := orjson.loads(text), bool | int | float):
            return found
    return text


def _text(attribute: str, op: str, value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _scalar(attribute, op, text) == value else f'"{text}"'


def _new_name(rows: Sequence[Row]) -> str:
    names = {row["name"] for row in rows}
    return next(name for n in range(1, len(rows) + 2) if (name := f"rule-{n}") not in names)
