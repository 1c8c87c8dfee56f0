"""What a field answers to a value it refuses."""

import math
from typing import Any

import pytest

from app.core.errors import Invalid
from app.core.validation import fields

NAN, INFINITY = math.nan, math.inf
LONE_SURROGATE = "\ud800"


def refused(field: fields.Field, value: Any) -> list[tuple]:
    with pytest.raises(Invalid) as raised:
        field.deserialize(value)
    return [(entry["type"], entry["loc"]) for entry in raised.value.errors]


def refused_as(field: fields.Field, value: Any) -> str:
    [(type_, loc)] = refused(field, value)
    assert loc == []
    return type_


def words(field: fields.Field, value: Any) -> tuple[str, Any]:
    with pytest.raises(Invalid) as raised:
        field.deserialize(value)
    [entry] = raised.value.errors
    assert entry["input"] is value
    return entry["msg"], entry.get("ctx")
