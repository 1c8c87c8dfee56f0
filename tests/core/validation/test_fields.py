from datetime import UTC, datetime
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.clock import rfc3339
from app.core.errors import Invalid
from app.core.validation import fields
from app.core.validation.schemas import Schema
from tests.core.validation.refusing import refused_as, words


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Point(Schema):
    x = fields.Int(required=True)
    label = fields.Str()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
near_numbers = st.text("0123456789+-_. eE\t\n\x1c\xa0\u0663xaNInf", max_size=30)
near_dates = st.one_of(
    st.text("0123456789-:TtZz+ _.,\u2212é", max_size=34),
    st.datetimes(timezones=st.timezones() | st.none()).map(datetime.isoformat),
    st.floats().map(str),
)
EVERY_FIELD = [
    fields.Str(min_length=1, max_length=5, pattern="^[a-z]+$"),
    fields.Bool(),
    fields.Int(ge=0, le=365),
    fields.Int(),
    fields.AwareDateTime(),
    fields.Email(),
    fields.Uuid(),
    fields.Choice(Colour),
    fields.Literal("a", "b"),
    fields.LiteralTrue(),
    fields.JsonObject(),
    fields.AnyJson(),
    fields.ListOf(fields.Str()),
    fields.ListOf(fields.Nested(Point)),
    fields.Nested(Point),
]


class TestEveryField:
    @pytest.mark.parametrize("field", EVERY_FIELD, ids=lambda field: type(field).__name__)
    @given(value=json_values | near_numbers | near_dates)
    def test_raises_nothing_but_invalid(self, field, value):
        try:
            field.deserialize(value)
        except Invalid as refusal:
            entries = refusal.errors
        else:
            entries = []

        assert all(entry["type"] and entry["msg"] for entry in entries)

    def test_loads_null_where_it_is_nullable(self):
        assert fields.Str(nullable=True, min_length=1).deserialize(None) is None
        assert fields.ListOf(fields.Str(), nullable=True).deserialize(None) is None


class TestStr:
    def test_refuses_text_that_postgresql_cannot_hold_after_its_own_rules(self):
        assert refused_as(fields.Str(), "a\x00b") == "string_unicode"
        assert refused_as(fields.Str(pattern="^[a-z]+$"), "a\x00b") == "string_pattern_mismatch"

    @given(st.text())
    def test_loads_every_storable_text_as_it_is(self, text):
        if "\x00" in text:
            assert refused_as(fields.Str(), text) == "string_unicode"
        else:
            assert fields.Str().deserialize(text) == text


class TestEmail:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("AP@Acme-Corp.COM", "AP@acme-corp.com"),
            (" ap@acme.com\t", "ap@acme.com"),
            ("AP Team <ap@acme.com>", "ap@acme.com"),
            ('"Team, AP" <ap@acme.com>', "ap@acme.com"),
            ("<ap@acme.com>", "ap@acme.com"),
            ("a@xn--mller-kva.de", "a@müller.de"),
            ("a" * 65 + "@acme.com", "a" * 65 + "@acme.com"),
            ("a@x.example", "a@x.example"),
        ],
    )
    def test_loads_the_bare_address(self, text, address):
        assert fields.Email().deserialize(text) == address

    @pytest.mark.parametrize("text", ["a@b.co\n", "a@b.co\x00", "a" * 100_000 + "@acme.com"])
    def test_refuses_line_feeds_nul_and_what_is_too_long(self, text):
        assert refused_as(fields.Email(), text) == "value_error"


class TestInt:
    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, "99999999999999999999"])
    def test_refuses_what_no_bigint_column_holds(self, value):
        assert refused_as(fields.Int(), value) == "int_parsing_size"

    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 9007199254740993])
    def test_loads_all_of_bigint_exactly(self, value):
        assert fields.Int().deserialize(value) == value

    def test_looks_at_its_bounds_before_the_column(self):
        assert refused_as(fields.Int(ge=0, le=365), 10**26) == "less_than_equal"


class TestAwareDateTime:
    @given(st.datetimes(timezones=st.timezones()))
    def test_reads_what_it_writes_and_loads_utc(self, moment):
        try:
            expected = moment.astimezone(UTC)
        except OverflowError:
            assert refused_as(fields.AwareDateTime(), moment.isoformat()) == "datetime_parsing"
        else:
            loaded = fields.AwareDateTime().deserialize(rfc3339(expected))
            assert (loaded, loaded.tzinfo) == (expected, UTC)

    @pytest.mark.parametrize(
        ("value", "year"),
        [("0001-01-01T00:00:00+12:00", 0), ("9999-12-31T23:59:59-12:00", 10000)],
    )
    def test_refuses_moments_that_utc_cannot_write(self, value, year):
        assert refused_as(fields.AwareDateTime(), value) == "datetime_parsing"
        assert words(fields.AwareDateTime(), value)[1] == {"error": f"year {year} is out of range"}
