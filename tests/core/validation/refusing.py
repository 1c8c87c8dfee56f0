"""What a field answers to a value it refuses."""

import math
from typing import Any

import pytest
from marshmallow import ValidationError

from app.core.validation import fields

NAN, INFINITY = math.nan, math.inf
LONE_SURROGATE = "\ud800"


def refused(field: fields.Field, value: Any) -> list[tuple]:
    with pytest.raises(ValidationError) as raised:
        field.deserialize(value)
    return [(one.type, one.loc) for one in raised.value.messages]


def refused_as(field: fields.Field, value: Any) -> str:
    [(type_, loc)] = refused(field, value)
    assert loc == ()
    return type_


def words(field: fields.Field, value: Any) -> tuple[str, Any]:
    with pytest.raises(ValidationError) as raised:
        field.deserialize(value)
    [one] = raised.value.messages
    assert one.value is value
    return one.msg, one.ctx
