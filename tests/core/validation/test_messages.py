import json

import pytest

from app.core.errors import Entry, error
from app.core.validation.messages import (
    MAX_ANSWER,
    MAX_INPUT,
    MAX_LOC,
    MAX_TEXT,
    body,
)
from tests.core.validation.refusing import INFINITY, LONE_SURROGATE, NAN


def answered(*found: Entry) -> list[Entry]:
    return json.loads(body(found))["detail"]


def shown(value: object) -> object:
    [entry] = answered(error(["body"], "missing", "Field required", value))
    return entry["input"]


class TestInput:
    @pytest.mark.parametrize("value", [1.0, -0.0, 10**400, "é", None, {"a": [1]}])
    def test_shows_what_was_sent(self, value):
        assert shown(value) == value

    @pytest.mark.parametrize("value", [NAN, LONE_SURROGATE, {"a": LONE_SURROGATE}, object()])
    def test_is_null_for_what_json_cannot_carry(self, value):
        assert shown(value) is None
        assert shown([1, INFINITY]) == [1, None]

    def test_is_null_beyond_sixteen_kibibytes_of_utf8(self):
        fitting = "é" * (MAX_INPUT // 2 - 1)

        assert shown(fitting) == fitting
        assert shown(fitting + "é") is shown("x" * (MAX_INPUT + 1)) is None


class TestBody:
    def test_has_the_first_entries_that_fit(self):
        found = [error(["body", n], "int_type", "no", "x" * 1000) for n in range(1000)]

        text = body(found)

        shown = json.loads(text)["detail"]
        assert shown == found[: len(shown)]
        assert MAX_ANSWER - 1100 < len(text) <= MAX_ANSWER

    def test_has_the_first_entry_however_long_its_texts_are(self):
        names = ["\x01" * 8000] * 130
        entry = error(names, "enum", "\x01" * 10**6, "\x01" * 2000, {"expected": "\x01" * 10**6})

        text = body([entry])

        [only] = json.loads(text)["detail"]
        assert len(text) <= MAX_ANSWER
        assert only == {
            "type": "enum",
            "loc": ["\x01" * (MAX_LOC // 130 - 1) + "…"] * 130,
            "msg": "\x01" * (MAX_TEXT - 1) + "…",
            "input": "\x01" * 2000,
            "ctx": {"expected": "\x01" * (MAX_TEXT - 1) + "…"},
        }

    def test_shows_texts_of_the_greatest_length_whole(self):
        entry = error(["a" * MAX_LOC, 10**9], "value_error", "b" * MAX_TEXT, 1, {"error": {}})

        assert answered(entry) == [entry]
