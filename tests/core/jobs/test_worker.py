"""The worker runs jobs by the names that are stored in Redis."""

import pytest

from app.core.jobs.queues import Queue, connection, queue_named
from app.core.jobs.worker import make_worker


@pytest.mark.parametrize(
    "name",
    [
        "app.subscriptions.jobs.follow_plans",
        "app.webhook_deliveries.jobs.remove_old_deliveries",
        "app.webhooks.jobs.sweep",
    ],
)
def test_runs_a_job_that_waits_under_the_name_it_had_before(app, name):
    with app.app_context():
        waiting = queue_named(Queue.MAINTENANCE, connection()).enqueue(name, result_ttl=60)

        make_worker(app, [Queue.MAINTENANCE]).work(burst=True, logging_level="WARNING")

        assert waiting.get_status() == "finished"
