"""Log lines: one JSON object each, whatever is logged."""

import json
import logging

import pytest

from app.core.observability.logs import (
    JsonFormatter,
    add_facts,
    begin_request,
    resume_request,
)


@pytest.fixture
def lines(caplog):
    resume_request("")
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.INFO)
    return lambda: [json.loads(line) for line in caplog.handler.stream.getvalue().splitlines()]


class TestLines:
    def test_carry_the_event_its_fields_and_the_requests_facts(self, lines):
        begin_request("request-1")
        add_facts(tenant="t1")

        logging.getLogger("some.where").warning("thing_happened", extra={"count": 3})

        (line,) = lines()
        assert {key: line[key] for key in line if key != "timestamp"} == {
            "event": "thing_happened",
            "level": "warning",
            "logger": "some.where",
            "request_id": "request-1",
            "tenant": "t1",
            "count": 3,
        }

    def test_forget_the_facts_of_the_request_before(self, lines):
        begin_request("request-1")
        add_facts(tenant="t1")
        begin_request("request-2")

        logging.getLogger().info("next")

        assert lines()[0].get("tenant") is None
        assert lines()[0]["request_id"] == "request-2"

    @pytest.mark.parametrize(
        "value", ["line\nbreak", "\ud800", 10**30, {"a": object()}, float("nan"), b"\xff"]
    )
    def test_stay_one_line_of_json_whatever_is_logged(self, lines, value):
        logging.getLogger().info("odd", extra={"value": value})

        assert lines()[0]["event"] == "odd"

    def test_show_an_exception_in_the_same_line(self, lines):
        try:
            raise ValueError("no")
        except ValueError:
            logging.getLogger().exception("failed")

        assert lines()[0]["exception"].endswith("ValueError: no")

    @pytest.mark.parametrize("offered", ["", "with blank", "x" * 129, "a\nb", "rewind:1", None])
    def test_replace_a_request_id_that_is_unfit(self, offered):
        assert begin_request(offered) != offered
