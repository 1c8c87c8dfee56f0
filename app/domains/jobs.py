"""Checks the records of domains."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from app.config import current_config
from app.core.jobs.queues import Queue, job, logged_errors
from app.domains import challenges, checks
from app.domains.models import CheckError


@job(queue=Queue.MAINTENANCE, every=60)
def check_domains() -> None:
    """Look up the records that are due, many at a time and outside any transaction.

    After a minute the rest is left to the next run, so other jobs have their turn.
    """
    resolvers, ends_at = current_config().dns_resolvers, time.monotonic() + 60

    def check(domain: Any) -> CheckError | None:
        return challenges.check(domain.record_name, domain.record_value, resolvers)

    with ThreadPoolExecutor(checks.TOGETHER, thread_name_prefix="dns") as threads:
        while time.monotonic() < ends_at and (due := checks.take_due()):
            for domain, result in [(one, threads.submit(check, one)) for one in due]:
                with logged_errors("domain_not_checked", domain_id=str(domain.id)):
                    checks.store(domain.id, result.result())
