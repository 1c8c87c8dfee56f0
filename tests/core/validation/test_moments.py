from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.clock import rfc3339
from app.core.validation import fields
from tests.core.validation.refusing import INFINITY, NAN, refused_as, words


class TestAwareDateTime:
    @pytest.mark.parametrize(
        "text",
        [
            "2024-01-15T10:30:00Z",
            "2024-01-15t10:30:00z",
            "2024-01-15 10:30Z",
            "2024-01-15_10:30:00Z",
            "2024-01-15T12:30:00+02:00",
            "2024-01-15T12:30:00+0200",
            "2024-01-15T02:30:00\u221208:00",
            "2024-01-15T10:30:00.0000009Z",
            "2024-01-15T10:30:00,0Z",
            "1705314600",
            "1705314600000",
        ],
    )
    def test_reads_the_lenient_spellings_of_a_moment(self, text):
        moment = fields.AwareDateTime().deserialize(text)

        assert moment == datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
        assert moment.tzinfo is UTC

    @pytest.mark.parametrize(
        ("number", "text"),
        [
            (0, "1970-01-01T00:00:00Z"),
            (-1.5, "1969-12-31T23:59:58.500000Z"),
            (1705314600.5, "2024-01-15T10:30:00.500000Z"),
            (20_000_000_000, "2603-10-11T11:33:20Z"),
            (20_000_000_001, "1970-08-20T11:33:20.001000Z"),
            (-20_000_000_001, "1969-05-14T12:26:39.999000Z"),
            ("2024", "1970-01-01T00:33:44Z"),
            ("1.5", "1970-01-01T00:00:01.500000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999000Z"),
        ],
    )
    def test_reads_unix_time_in_seconds_or_milliseconds(self, number, text):
        assert rfc3339(fields.AwareDateTime().deserialize(number)) == text

    @pytest.mark.parametrize("text", ["2024-01-15T10:30:00", "2024-01-15", "2024-01-15 10:30:00.5"])
    def test_needs_an_offset(self, text):
        assert refused_as(fields.AwareDateTime(), text) == "timezone_aware"

    @pytest.mark.parametrize(
        ("text", "verdict"),
        [
            ("", "input is too short"),
            ("now", "input is too short"),
            ("2024-1-15", "input is too short"),
            ("15/01/2024", "invalid character in year"),
            (" 2024-01-15T10:30:00Z", "invalid character in year"),
            ("+2024-01-15T10:30:00Z", "invalid character in year"),
            ("2024/01/15T10:30:00Z", "invalid date separator, expected `-`"),
            ("2024-W03-1T10:30:00Z", "invalid character in month"),
            ("2024-01/15T10:30:00Z", "invalid date separator, expected `-`"),
            ("2024-01-1xT10:30:00Z", "invalid character in day"),
            ("2024-13-01T00:00:00Z", "month value is outside expected range of 1-12"),
            ("2023-02-29T00:00:00Z", "day value is outside expected range"),
            ("2024-01-15T24:00:00Z", "unexpected extra characters at the end of the input"),
            ("2024-01-15T10:30:60Z", "unexpected extra characters at the end of the input"),
            ("2024-01-15T10:30:00+05", "unexpected extra characters at the end of the input"),
            ("2024-01-15T10:30:00+24:00", "unexpected extra characters at the end of the input"),
            ("2024-01-15T10:30:00+05:60", "unexpected extra characters at the end of the input"),
            ("2024-01-15T10:30:00Z\n", "unexpected extra characters at the end of the input"),
            ("253402300800000", "dates after 9999 are not supported as unix timestamps"),
        ],
    )
    def test_judges_other_text_as_a_date(self, text, verdict):
        message, context = words(fields.AwareDateTime(), text)

        assert refused_as(fields.AwareDateTime(), text) == "datetime_from_date_parsing"
        assert message == f"Input should be a valid datetime or date, {verdict}"
        assert context == {"error": verdict}

    @pytest.mark.parametrize(
        ("value", "verdict"),
        [
            (1e20, "dates after 9999 are not supported as unix timestamps"),
            (-1e20, "dates before 0000 are not supported as unix timestamps"),
            (INFINITY, "dates after 9999 are not supported as unix timestamps"),
            (NAN, "NaN values not permitted"),
            (-62_135_596_800_001, "year 0 is out of range"),
            ("0000-01-01T00:00:00Z", "year 0 is out of range"),
            ("0001-01-01T00:00:00+12:00", "year 0 is out of range"),
            ("9999-12-31T23:59:59-12:00", "year 10000 is out of range"),
        ],
    )
    def test_refuses_moments_that_utc_cannot_write(self, value, verdict):
        assert refused_as(fields.AwareDateTime(), value) == "datetime_parsing"
        assert words(fields.AwareDateTime(), value)[1] == {"error": verdict}

    @pytest.mark.parametrize("value", [True, False, [], {}, None])
    def test_refuses_what_is_no_datetime(self, value):
        assert refused_as(fields.AwareDateTime(), value) == "datetime_type"

    @given(st.datetimes(timezones=st.just(UTC)))
    def test_reads_what_it_writes(self, moment):
        assert fields.AwareDateTime().deserialize(rfc3339(moment)) == moment
