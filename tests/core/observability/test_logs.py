"""Log lines: one JSON object each, whatever is logged."""

from __future__ import annotations

import io
import json
import logging

import pytest

from app.core.observability.logs import (
    JsonFormatter,
    Lines,
    add_facts,
    begin_request,
    resume_request,
    say,
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

    @pytest.mark.parametrize("offered", ["", "with blank", "x" * 129, "a\nb", None])
    def test_replace_a_request_id_that_is_unfit(self, offered):
        assert begin_request(offered) != offered


class TestSaying:
    FACTS = {"count": 3, "route": "/v1/\u2028", "odd": "\ud800", "large": 10**30}

    @pytest.fixture
    def only(self, monkeypatch):
        """The handler of the lines, which has taken the others' place."""
        handler = Lines()
        handler.stream = io.StringIO()
        monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
        logging.getLogger("some.where").manager._clear_cache()
        yield handler
        logging.getLogger("some.where").manager._clear_cache()

    def test_writes_the_line_that_logging_would_write(self, only):
        log = logging.getLogger("some.where")
        begin_request("request-1")
        add_facts(tenant="t1")

        say(log, "thing_happened", **self.FACTS)
        log.info("thing_happened", extra=self.FACTS)

        said, logged = (json.loads(line) for line in only.stream.getvalue().splitlines())
        assert said.pop("timestamp") <= logged.pop("timestamp")
        assert said == logged
        assert list(said) == list(logged)

    def test_reaches_every_handler_that_would_take_it(self, only):
        taken, grave = (logging.StreamHandler(io.StringIO()) for _ in range(2))
        grave.setLevel(logging.ERROR)
        logging.getLogger().handlers += [taken, grave]

        say(logging.getLogger("some.where"), "thing_happened", count=3)

        assert json.loads(only.stream.getvalue())["count"] == 3
        assert taken.stream.getvalue() == "thing_happened\n"
        assert grave.stream.getvalue() == ""

    def test_says_nothing_below_the_level(self, only, monkeypatch):
        monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)

        say(logging.getLogger("some.where"), "thing_happened")

        assert only.stream.getvalue() == ""

    @pytest.mark.parametrize("stream", [io.StringIO(), None])
    def test_stops_nobody_where_the_line_cannot_be_written(self, only, stream):
        only.stream = stream
        if stream is not None:
            stream.close()

        say(logging.getLogger("some.where"), "thing_happened")
