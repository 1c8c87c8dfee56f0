"""Prints what the checks of the worst known bodies take: processor time, and memory at its peak."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from app.core.errors import Invalid
from app.core.http.body_limits import MAX_BODY
from app.core.validation import messages
from app.custom_fields.models import FieldType
from app.custom_fields.schemas import CustomFieldCreateSchema, ValuesSchema
from app.custom_fields.service import MAX_EMAIL_FIELDS
from app.custom_fields.values import check as values_check
from app.custom_fields.values.rules import Rule
from app.plans.schemas import PlanPresetCreateSchema

MIB = 1024 * 1024
OPTIONS = [f"{number:0120}" for number in range(256)]  # 32 KiB
Case = tuple[str, Callable[[Any], Any], Any]


def cases() -> Iterator[Case]:
    """A name, the check, and the parsed body of at most MAX_BODY bytes of JSON."""
    lists = [_rule(f"list_{number}", FieldType.MULTI_SELECT) for number in range(256)]
    phones = [_rule(f"phone_{number}", FieldType.PHONE) for number in range(256)]
    mails = [_rule(f"mail_{number}", FieldType.EMAIL) for number in range(MAX_EMAIL_FIELDS)]
    wrong = ["x"] * (MAX_BODY // 4 - 100)
    yield "a list of wrong options", _values(lists), {"list_0": wrong}
    yield "256 lists of wrong options", _values(lists), {one.key: wrong[:1000] for one in lists}
    yield "256 phone numbers", _values(phones), {one.key: "+4930901820" for one in phones}
    yield "16 long e-mail addresses", _values(mails), {one.key: "\u0300" * 2000 for one in mails}
    named = {one.key: "a@" + "ü." * 30 + "co" for one in mails}
    yield "16 international addresses", _values(mails), named
    yield "90,000 unknown keys", ValuesSchema().load, {f"{n:06}": 0 for n in range(90_000)}
    yield "500,000 numbers", ValuesSchema().load, _body([0] * 500_000)
    yield "19,000 small lists", ValuesSchema().load, _body([[0]] * 19_000 + [0] * 450_000)
    yield "100,000 wrong texts", ValuesSchema().load, _body(["\0"] * 100_000)
    yield "a key of 1 MiB", ValuesSchema().load, {"k" * (MAX_BODY - 10): 0}
    options = {"entity_type": "user", "field_key": "a", "label": "A", "field_type": "select"}
    yield "250,000 options", CustomFieldCreateSchema().load, {**options, "options": wrong}
    flag = {"flag_key": "a", "flag_type": "json", "default_value": 0}
    yield "19,000 flags", PlanPresetCreateSchema().load, {"name": "a", "flags": [flag] * 19_000}


def measured(check: Callable[[Any], Any], body: Any) -> tuple[float, int, int]:
    """Milliseconds (the best of five), bytes at the peak beyond the body, bytes of the answer."""
    seconds = []
    for _ in range(5):
        started = time.process_time()
        _answer(check, body)
        seconds.append(time.process_time() - started)
    tracemalloc.start()
    answer = _answer(check, body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds) * 1000, peak, len(answer)


def report() -> str:
    """A line per case."""
    lines = [f"{'case':28} {'ms':>6} {'MiB':>6} {'KiB of answer':>14}"]
    for name, check, body in cases():
        assert len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) <= MAX_BODY
        milliseconds, peak, size = measured(check, body)
        lines.append(f"{name:28} {milliseconds:6.1f} {peak / MIB:6.1f} {size / 1024:14.1f}")
    return "\n".join(lines)


def _answer(check: Callable[[Any], Any], body: Any) -> bytes:
    try:
        check(body)
    except Invalid as fault:
        return messages.body(fault.errors)
    return b""


def _values(rules: list[Rule]) -> Callable[[Any], Any]:
    return lambda values: values_check.check(
        rules, ValuesSchema().load(_body(values))["values"], ["body", "values"], is_patch=False
    )


def _body(values: Any) -> dict[str, Any]:
    return {"entity_type": "user", "values": values if isinstance(values, dict) else {"a": values}}


def _rule(key: str, field_type: FieldType) -> Rule:
    return Rule(UUID(int=0), key, field_type, OPTIONS, is_required=False, is_searchable=False)
