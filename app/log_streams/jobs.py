"""Background work of log streams, besides the writer."""

from __future__ import annotations

from app.core.jobs.queues import Queue, job
from app.log_streams import work


@job(queue=Queue.MAINTENANCE)
def test_log_stream(stream_id: str) -> None:
    """Write a test's record."""
    work.test(stream_id)
