"""Values spelt here mean to PostgreSQL what they mean spelt by psycopg2."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.db.literals import literals
from app.extensions import db

ZONES = [UTC, timezone(timedelta(hours=-5, minutes=-30)), timezone(timedelta(hours=14))]
READ = "PREPARE reading AS SELECT $1::text, $2::uuid, $3::timestamptz, $4::bigint, $5::boolean"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.sampled_from(ZONES))  # noqa: DTZ001 - bounds


@pytest.fixture(scope="module")
def cursor(app):
    with app.app_context():
        pooled = db.engine.raw_connection()
    cursor = pooled.driver_connection.cursor()
    cursor.execute(READ)
    yield cursor
    cursor.execute("DEALLOCATE reading")
    pooled.close()


def asked(cursor, spelt):
    cursor.execute(f"EXECUTE reading({spelt})")
    return cursor.fetchone()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    values=st.tuples(
        st.none() | texts | st.text("'\\\"$;-ä\u2028\u02bc", max_size=5),
        st.none() | st.uuids(),
        st.none() | moments,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.booleans(),
    )
)
def test_are_read_as_the_values_they_are(cursor, values):
    spelt = literals(values)

    text = values[0] or ""
    assert (spelt is None) == ("'" in text or "\\" in text)
    assert asked(cursor, spelt or cursor.mogrify("%s, %s, %s, %s, %s", values).decode()) == values


@pytest.mark.parametrize(
    "value",
    ["it's", "a\\", "''", "a\0b", b"bytes", 1.5, ["a"], {"a": 1}, type("S", (str,), {})("s")],
)
def test_leave_to_psycopg2_what_needs_care(value):
    assert literals(["fine", value, 1]) is None


def test_of_nothing_are_nothing():
    assert literals([]) == ""
    assert literals(["a", None, True, -1, UUID(int=0)]) == (
        "'a', NULL, True, -1, '00000000-0000-0000-0000-000000000000'"
    )
