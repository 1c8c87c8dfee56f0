from datetime import datetime
from enum import Enum
from uuid import UUID

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.core.validation import fields
from app.core.validation.schemas import Schema
from tests.core.validation.refusing import LONE_SURROGATE, NAN, refused_as, words


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

    def test_refuses_null_as_its_own_wrong_type(self):
        types = {
            type(field).__name__: field
            for field in EVERY_FIELD
            if type(field) is not fields.AnyJson
        }

        found = {name: refused_as(field, None) for name, field in types.items()}

        assert found == {
            "Str": "string_type",
            "Bool": "bool_type",
            "Int": "int_type",
            "AwareDateTime": "datetime_type",
            "Email": "string_type",
            "Uuid": "uuid_type",
            "Choice": "enum",
            "Literal": "literal_error",
            "LiteralTrue": "literal_error",
            "JsonObject": "dict_type",
            "ListOf": "list_type",
            "Nested": "model_attributes_type",
        }

    def test_loads_null_where_it_is_nullable(self):
        assert fields.Str(nullable=True, min_length=1).deserialize(None) is None
        assert fields.ListOf(fields.Str(), nullable=True).deserialize(None) is None

    @pytest.mark.parametrize(
        "field",
        [fields.Str(), fields.Bool(), fields.Int(), fields.AwareDateTime(), fields.Choice(Colour)],
    )
    def test_refuses_half_of_a_surrogate_pair(self, field):
        assert refused_as(field, "x" + LONE_SURROGATE) == "string_unicode"


class TestStr:
    @pytest.mark.parametrize("value", [1, 1.5, True, [], ["x"], {}, NAN])
    def test_converts_nothing(self, value):
        assert refused_as(fields.Str(), value) == "string_type"

    @pytest.mark.parametrize(
        "text", ["", " ", " a ", "\t\n\r", "\x01\x1f\x7f", "日本語", "'; DROP"]
    )
    def test_trims_nothing_and_takes_any_text(self, text):
        assert fields.Str().deserialize(text) == text

    def test_counts_code_points(self):
        field = fields.Str(max_length=3)

        assert field.deserialize("😀😀😀") == "😀😀😀"
        assert words(field, "e\u0301e\u0301") == (
            "String should have at most 3 characters",
            {"max_length": 3},
        )

    def test_says_character_for_one(self):
        assert words(fields.Str(min_length=1), "")[0] == "String should have at least 1 character"
        assert words(fields.Str(min_length=2), "")[0] == "String should have at least 2 characters"

    def test_refuses_a_last_newline_that_its_pattern_does_not_name(self):
        field = fields.Str(pattern="^[a-z]+$")

        assert field.deserialize("abc") == "abc"
        assert words(field, "a\n") == (
            "String should match pattern '^[a-z]+$'",
            {"pattern": "^[a-z]+$"},
        )
        assert refused_as(field, "") == "string_pattern_mismatch"

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

    @pytest.mark.parametrize(
        "text",
        [
            "x",
            "",
            "@acme.com",
            "a@b",
            "a@x.test",
            "a@x.local",
            "a@x.invalid",
            "a@x.localhost",
            "a@x.onion",
            "a@x.arpa",
            '"quoted local"@acme.com',
            "a@[127.0.0.1]",
            "a@acme.123",
            "a@b.co\n",
            "a@b.co\x00",
            "a" * 100_000 + "@acme.com",
            "a@" + "b" * 100_000,
        ],
    )
    def test_refuses_what_is_no_address(self, text):
        message, context = words(fields.Email(), text)

        assert refused_as(fields.Email(), text) == "value_error"
        assert message == f"value is not a valid email address: {context['reason']}"

    @pytest.mark.parametrize("value", [1, [], {}, True])
    def test_refuses_what_is_no_text(self, value):
        assert refused_as(fields.Email(), value) == "string_type"

    @pytest.mark.parametrize(
        "domain",
        [
            "acme.com",
            "ACME.Com",
            "müller.de",
            "xn--mller-kva.de",
            "XN--mller-kva.de",
            "\uff41\uff43\uff4d\uff45\u3002com",
            ".".join(["d" * 60] * 4),
            ".".join(["ü" * 40] * 3 + ["de"]),
            "xn--" + "tiq" * 5 + ".de",
            "acme.com.",
            "acme..com",
            "-acme.com",
            "b@acme.com",
            "b.test",
            "[127.0.0.1]",
            "b",
            "",
        ],
    )
    @pytest.mark.parametrize("length", [1, 2, 9, 10, 11, 64, 65, 100, 244, 245, 246, 260])
    def test_judges_an_address_as_email_validator_does(self, domain, length):
        for local_part in ("a" * length, "A" * length, "a." * length, "ü" * length, "a+" * length):
            address = f"{local_part}@{domain}"
            assert judged(fields.Email().deserialize, address) == judged(whole, address)

    @given(st.text("aSü.+\"@ <>(-_'", max_size=8), st.text("abxü.-@[]1 ", max_size=12))
    def test_judges_any_address_as_email_validator_does(self, local_part, domain):
        address = f"{local_part}@{domain}"

        assert "<" in address or judged(fields.Email().deserialize, address) == judged(
            whole, address
        )


def whole(address: str) -> str:
    """What email-validator itself makes of it."""
    return validate_email(address.strip(), check_deliverability=False).normalized


def judged(judge, address: str) -> str:
    """The address that it takes this for, or why it refuses it."""
    try:
        return judge(address)
    except EmailNotValidError as fault:
        return f"refused: {fault}"
    except Invalid as refusal:
        return f"refused: {refusal.errors[0]['ctx']['reason']}"


class TestChoice:
    def test_loads_the_member_whose_value_is_sent(self):
        assert fields.Choice(Colour).deserialize("red") is Colour.RED

    @pytest.mark.parametrize("value", ["RED", " red", "Colour.RED", "", 1, True, [], {}, "red\x00"])
    def test_refuses_all_else(self, value):
        message, context = words(fields.Choice(Colour), value)

        assert message == "Input should be 'red', 'green' or 'blue'"
        assert context == {"expected": "'red', 'green' or 'blue'"}

    def test_writes_the_value_of_a_member(self):
        assert fields.Choice(Colour).to_json(Colour.RED) == "red"
        assert fields.Choice(Colour).to_json("red") == "red"


class TestLiteral:
    def test_loads_one_of_its_texts_exactly(self):
        field = fields.Literal("weekly", "monthly")

        assert field.deserialize("weekly") == "weekly"
        assert words(field, "Weekly") == (
            "Input should be 'weekly' or 'monthly'",
            {"expected": "'weekly' or 'monthly'"},
        )

    @pytest.mark.parametrize("value", [None, 1, 1.0, [], {}, "weekly\n", NAN])
    def test_refuses_all_else(self, value):
        assert refused_as(fields.Literal("weekly"), value) == "literal_error"

    def test_quotes_its_texts_as_python_does(self):
        assert words(fields.Literal("it's"), "x")[0] == 'Input should be "it\'s"'


class TestLiteralTrue:
    @pytest.mark.parametrize("value", [True, 1, 1.0])
    def test_loads_what_equals_true(self, value):
        assert fields.LiteralTrue().deserialize(value) is True

    @pytest.mark.parametrize("value", [False, 0, 2, "true", "True", "1", "", None, [], [True], {}])
    def test_refuses_what_only_means_yes(self, value):
        assert words(fields.LiteralTrue(), value) == ("Input should be True", {"expected": "True"})


class TestUuid:
    @pytest.mark.parametrize(
        "text",
        [
            "018f0000-0000-7000-8000-00000000000a",
            "018F0000-0000-7000-8000-00000000000A",
            "018f0000000070008000" + "00000000000a",
            "{018f0000-0000-7000-8000-00000000000a}",
            "urn:uuid:018f0000-0000-7000-8000-00000000000a",
        ],
    )
    def test_reads_its_four_spellings(self, text):
        assert fields.Uuid().deserialize(text) == UUID("018f0000-0000-7000-8000-00000000000a")

    @pytest.mark.parametrize(
        ("text", "verdict"),
        [
            ("nope", "invalid character: found `n` at 0"),
            ("abc", "invalid length: found 3"),
            ("018f0000-0000-7000-8000000000000000", "invalid group count: expected 5, found 4"),
            (
                "018f0000-0000-7000-8000-00000000000",
                "invalid group length in group 4: expected 12, found 11",
            ),
        ],
    )
    def test_says_why_other_text_is_none(self, text, verdict):
        assert words(fields.Uuid(), text) == (
            f"Input should be a valid UUID, {verdict}",
            {"error": verdict},
        )

    @pytest.mark.parametrize("value", [1, True, [], {}])
    def test_refuses_what_is_no_text(self, value):
        assert refused_as(fields.Uuid(), value) == "uuid_type"
