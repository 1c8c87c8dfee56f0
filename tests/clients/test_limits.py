"""``controlplane.limits``: a program counts in its memory what a tenant uses of its limits."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from werkzeug.serving import make_server

from app.usage.models import UsageCounter
from tests.database import execute, query, rows
from tests.factories import create_api_key, create_limits, create_tenant, limit_flag
from tests.ports import free_port
from tests.running.serving import HOST, wait_until

TTL = 5
EXITING = """
import sys
from controlplane.limits import Limits

limits = Limits(*sys.argv[1:])
assert all(limits.allow("calls") for _ in range(10))
"""


@contextmanager
def service(app, port):
    """The service at a port, and the paths of its requests."""
    paths = []

    def noted(environ, start):
        paths.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        return app(environ, start)

    server = make_server(HOST, port, noted, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def paths(app, port):
    """Those of the requests; the service runs meanwhile."""
    with service(app, port) as paths:
        yield paths


@pytest.fixture
def key(app):
    create_limits(
        "free",
        limit_flag("calls", 1000),
        limit_flag("mails", 10, policy="soft"),
        limit_flag("reports", -1),
    )
    return create_api_key(create_tenant(), ["usage:write"])


@pytest.fixture
def limits_of(importable, port, key):
    """Makes the limits of another process."""
    made = []

    def make(**options):
        from controlplane.limits import Limits

        made.append(Limits(f"http://{HOST}:{port}", key, **{"ttl": TTL} | options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def used(feature="calls"):
    return sum(counter.used for counter in rows(UsageCounter, feature=feature))


def held(feature="calls"):
    return query(
        "SELECT coalesce(sum(amount), 0) FROM usage_holds"
        " WHERE feature = :feature AND state = 'open' AND expires_at > now()",
        feature=feature,
    )[0][0]


class TestLeases:
    def test_cost_few_requests_and_are_returned(self, limits_of, paths):
        limits = limits_of()

        allowed = sum(limits.allow("calls") for _ in range(300))
        limits.close()

        assert allowed == used() == 300
        assert held() == 0
        assert len(paths) < 15

    def test_are_reported_and_shrink_in_the_background(self, limits_of, paths):
        limits = limits_of()
        for _ in range(300):
            limits.allow("calls")

        wait_until(lambda: used() == 300 and held() == 0, TTL)

    def test_of_an_unlimited_limit(self, limits_of, paths):
        limits = limits_of()

        assert all(limits.allow("reports", 10**6) for _ in range(100))
        limits.close()

        assert used("reports") == 10**8

    def test_end_with_the_program(self, controlplane_folder, port, paths, key):
        url = f"http://{HOST}:{port}"
        environ = {**os.environ, "PYTHONPATH": str(controlplane_folder)}

        subprocess.run([sys.executable, "-c", EXITING, url, key], env=environ, check=True)

        assert (used(), held()) == (10, 0)

    def test_belong_to_the_process_that_borrowed_them(self, limits_of, paths):
        limits = limits_of()
        assert all(limits.allow("calls") for _ in range(20))

        child = os.fork()
        if child == 0:
            is_right = all(limits.allow("calls") for _ in range(30))
            limits.close()
            os._exit(0 if is_right else 1)
        _, status = os.waitpid(child, 0)
        limits.close()

        assert status == 0
        assert (used(), held()) == (50, 0)


class TestLimitsWithoutLeases:
    def test_soft_ones_are_counted_one_by_one(self, limits_of, paths):
        limits = limits_of()

        assert all(limits.allow("mails") for _ in range(20))

        assert used("mails") == 20

    def test_an_exhausted_limit_is_asked_for_once_a_second(self, limits_of, paths):
        limits = limits_of()
        assert limits.allow("calls", 1000)

        assert not any(limits.allow("calls") for _ in range(500))

        assert len(paths) < 5

    def test_an_unknown_one_is_an_error(self, limits_of, paths):
        from controlplane import ApiError

        with pytest.raises(ApiError) as refused:
            limits_of().allow("nothing")
        with pytest.raises(ValueError, match="at least 1"):
            limits_of().allow("calls", 0)

        assert refused.value.status == 422


class TestUnavailableService:
    def test_allows_what_is_borrowed_until_the_lease_ends(self, app, limits_of, port):
        limits = limits_of(ttl=5)
        with service(app, port):
            assert limits.allow("calls", 10)
            assert limits.allow("calls", 2)  # of 20 that it borrows

        began = time.monotonic()
        assert sum(limits.allow("calls") for _ in range(30)) == 18
        wait_until(lambda: time.monotonic() > began + 5)
        assert not limits.allow("calls")
        with service(app, port):
            limits.close()

        assert used() == 30

    def test_lenient_limits_allow_everything_and_report_it_later(self, app, limits_of, port):
        limits = limits_of(lenient=["calls", "mails"])
        with service(app, port):
            assert limits.allow("calls", 10)

        assert all(limits.allow(name) for name in ("calls", "mails") for _ in range(50))
        assert limits.allow("calls", 990)
        with service(app, port):
            wait_until(lambda: used() == 1000 and used("mails") == 50)
            (lease,) = query("SELECT counted, over_by FROM usage_holds WHERE kind = 'lease'")

        assert tuple(lease) == (1000, 50)

    def test_a_request_whose_answer_was_lost_is_counted_once(self, app, limits_of, port):
        def losing(environ, start):
            answer = app(environ, start)
            if environ["PATH_INFO"].endswith("consume"):
                raise ConnectionResetError
            return answer

        limits = limits_of()
        with service(losing, port):
            assert not limits.allow("mails")
        with service(app, port):
            wait_until(lambda: limits.allow("mails"))

        assert used("mails") == 1

    def test_a_lease_that_was_released_is_replaced(self, app, limits_of, paths):
        limits = limits_of()
        assert limits.allow("calls", 10)
        execute("UPDATE usage_holds SET expires_at = now()")

        assert limits.allow("calls", 5)
        limits.close()

        assert (used(), held()) == (15, 0)
