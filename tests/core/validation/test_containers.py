from app.core.validation import fields
from app.core.validation.fields import MAX_ITEMS
from app.core.validation.messages import MAX_ENTRIES
from app.core.validation.schemas import Schema
from tests.core.validation.refusing import INFINITY, LONE_SURROGATE, NAN, refused, words


class Point(Schema):
    x = fields.Int(required=True)
    label = fields.Str()


class TestFreeJson:
    def test_says_where_postgresql_cannot_hold_it(self):
        value = {
            "a": ["ok", "\x00"],
            "b": {"c": NAN},
            "d": LONE_SURROGATE,
            "e\x00": 1,
            "f": {LONE_SURROGATE: 1},
        }

        assert refused(fields.JsonObject(), value) == [
            ("string_unicode", ["a", 1]),
            ("finite_number", ["b", "c"]),
            ("string_unicode", ["d"]),
            ("string_unicode", []),
            ("string_unicode", ["f"]),
        ]
        assert refused(fields.AnyJson(), INFINITY) == [("finite_number", [])]

    def test_stops_where_an_answer_would_be_absurd(self):
        wrong = [[NAN], {"\x00": 1}, "\x00"] * MAX_ENTRIES

        found = refused(fields.AnyJson(), wrong)

        assert len(found) == MAX_ENTRIES
        assert found[:3] == [
            ("finite_number", [0, 0]),
            ("string_unicode", [1]),
            ("string_unicode", [2]),
        ]


class TestListOf:
    def test_stops_where_an_answer_would_be_absurd(self):
        assert len(refused(fields.ListOf(fields.Str()), [1] * (MAX_ENTRIES + 5))) == MAX_ENTRIES

    def test_has_at_most_five_thousand_items(self):
        field = fields.ListOf(fields.Str())

        assert len(field.deserialize(["a"] * MAX_ITEMS)) == MAX_ITEMS
        assert words(field, ["a"] * (MAX_ITEMS + 1)) == (
            "List should have at most 5000 items after validation, not 5001",
            {"field_type": "List", "max_length": MAX_ITEMS, "actual_length": MAX_ITEMS + 1},
        )

    def test_reports_wrong_items_before_their_number(self):
        field = fields.ListOf(fields.Str())

        assert refused(field, ["a", 1, *["a"] * MAX_ITEMS]) == [("string_type", [1])]
