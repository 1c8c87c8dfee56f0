import pytest

from app.core.validation import fields
from tests.core.validation.refusing import INFINITY, NAN, refused_as, words


class TestBool:
    @pytest.mark.parametrize("word", ["1", "on", "t", "true", "y", "yes", "tRuE", "ON", "Y"])
    def test_reads_words_for_true_in_any_case(self, word):
        assert fields.Bool().deserialize(word) is True

    @pytest.mark.parametrize("word", ["0", "off", "f", "false", "n", "no", "False", "OFF"])
    def test_reads_words_for_false_in_any_case(self, word):
        assert fields.Bool().deserialize(word) is False

    @pytest.mark.parametrize(
        ("number", "meaning"),
        [(True, True), (False, False), (1, True), (0, False), (1.0, True), (-0.0, False)],
    )
    def test_reads_one_and_zero(self, number, meaning):
        assert fields.Bool().deserialize(number) is meaning

    @pytest.mark.parametrize(
        "value", ["true ", " true", "", "1.0", "01", "TRUЕ", 2, -1, 2.0, 2**63 - 1, -(2**63)]
    )
    def test_cannot_interpret_other_text_and_integral_numbers(self, value):
        assert refused_as(fields.Bool(), value) == "bool_parsing"

    @pytest.mark.parametrize("value", [0.5, 2**63, -(2**63) - 1, 1e300, NAN, INFINITY, [], {}])
    def test_refuses_what_is_no_boolean_at_all(self, value):
        assert refused_as(fields.Bool(), value) == "bool_type"


class TestInt:
    @pytest.mark.parametrize(
        ("value", "number"),
        [
            (True, 1),
            (False, 0),
            (7, 7),
            (1.0, 1),
            (-0.0, 0),
            ("12", 12),
            (" 12 ", 12),
            ("\n12\n", 12),
            ("\u300012\x85", 12),
            ("+12", 12),
            ("-12", -12),
            ("1_0", 10),
            ("12.0", 12),
            ("12.000", 12),
            ("007", 7),
            ("0" * 5000 + "7", 7),
        ],
    )
    def test_reads_integers_in_their_lenient_spellings(self, value, number):
        assert fields.Int().deserialize(value) == number

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "-",
            "+-1",
            "_1",
            "1_",
            "1__0",
            "12.",
            "12.5",
            "1.0_0",
            "1e1",
            "0x10",
            "1,0",
            "NaN",
            "true",
            "٣",
            "１２",
            "²",
            "1\x00",
            "\x1c1",
            "\u200b1",
            "12abc",
        ],
    )
    def test_cannot_parse_other_text(self, text):
        assert refused_as(fields.Int(), text) == "int_parsing"

    @pytest.mark.parametrize("value", [None, [], {}, [1]])
    def test_refuses_what_is_no_number(self, value):
        assert refused_as(fields.Int(), value) == "int_type"

    @pytest.mark.parametrize("value", [0.5, -0.5, 49.99])
    def test_refuses_a_fraction(self, value):
        assert refused_as(fields.Int(), value) == "int_from_float"

    @pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY])
    def test_refuses_what_is_not_finite(self, value):
        assert refused_as(fields.Int(), value) == "finite_number"

    @pytest.mark.parametrize("value", [1e300, 2.0**63, -(2.0**63), "9" * 4301])
    def test_refuses_floats_and_digits_beyond_its_size(self, value):
        assert refused_as(fields.Int(ge=0, le=9), value) == "int_parsing_size"

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, "99999999999999999999"])
    def test_refuses_what_no_bigint_column_holds(self, value):
        assert refused_as(fields.Int(), value) == "int_parsing_size"

    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 9007199254740993])
    def test_loads_all_of_bigint_exactly(self, value):
        assert fields.Int().deserialize(value) == value

    def test_looks_at_its_bounds_before_the_column(self):
        field = fields.Int(ge=0, le=365)

        assert words(field, 10**26) == ("Input should be less than or equal to 365", {"le": 365})
        assert words(field, "-1") == ("Input should be greater than or equal to 0", {"ge": 0})
        assert field.deserialize(365) == 365
        assert field.deserialize("0") == 0
