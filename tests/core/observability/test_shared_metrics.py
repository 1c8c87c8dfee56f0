"""Metrics that processes share through Redis."""

from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY
from redis import Redis

from app.core.observability import shared_metrics
from app.core.observability.shared_metrics import SharedMetric


@pytest.fixture
def metric(app) -> Iterator[SharedMetric]:
    made = SharedMetric("pages_read", "Pages.", ["book", "half"], zeros=["emma first"])
    with app.app_context():
        yield made
    SharedMetric.all.remove(made)
    REGISTRY.unregister(made._gauge)


def shown(half: str) -> float | None:
    return REGISTRY.get_sample_value("pages_read", {"book": "emma", "half": half})


class TestSharedMetric:
    def test_adds_stores_and_shows_the_values_of_fields(self, metric):
        metric.add({"emma second": 2})
        metric.add({"emma second": 3})
        metric.put({"ulysses first": 7.5})

        metric.show()

        assert metric.read() == {"emma first": 0, "emma second": 5, "ulysses first": 7.5}
        assert (shown("first"), shown("second")) == (0, 5)

    def test_logs_that_nothing_is_stored_without_redis(self, metric, monkeypatch, caplog):
        away = Redis.from_url("unix:///nowhere/redis.sock")
        monkeypatch.setattr(shared_metrics, "connection", lambda: away)
        metric.add({"emma second": 1})
        metric.put({"emma second": 1})
        monkeypatch.undo()

        assert [one.getMessage() for one in caplog.records] == ["metric_not_stored"] * 2
        assert metric.read() == {"emma first": 0}
