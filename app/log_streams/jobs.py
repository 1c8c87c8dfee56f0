"""Background work of log streams, besides the writer."""

from __future__ import annotations

from app.core.db.tenancy import platform_transaction
from app.core.jobs.queues import Queue, job
from app.log_streams import service, work


@job(queue=Queue.MAINTENANCE)
def test_log_stream(stream_id: str) -> None:
    """Write a test's record; until its end a further request for a test queues nothing."""
    try:
        work.test(stream_id)
    finally:
        test_log_stream.forget_push(stream_id)


@job(queue=Queue.MAINTENANCE, every=3600)
def warn_behind() -> None:
    """Record which streams have not read events that will be removed."""
    with platform_transaction():
        service.warn_behind()
