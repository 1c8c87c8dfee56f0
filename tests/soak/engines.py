"""One fault of an engine after another, at random, under load through a real gunicorn."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis

from app.dev.engines.instance import APPLICATION_ROLE
from app.dev.engines.server import Server
from tests import factories
from tests.hostile.installation import (
    REDIS_TIMEOUT,
    STATEMENT_TIMEOUT,
    THREADS,
    WORKERS,
    Installation,
    installation,
)
from tests.hostile.load import Outcomes, load, seeded
from tests.soak.verdict import Verdict

LOAD_SECONDS = 85
AFTERMATH = 2.0  # seconds after a fault of PostgreSQL in which a 503 may still be its doing
CUT_AFTER = STATEMENT_TIMEOUT + 2 + 0.5
LONGEST = CUT_AFTER + 2 + 2  # with a connection's time-out, and a busy machine


def prove(deadline: float) -> Verdict:
    """503s while PostgreSQL is away and nothing else ever; Redis is not missed; all recovers."""
    with installation() as service:
        factories.bind(service.app)
        faults = Faults(service)
        with load(service.port, seeded()) as outcomes:
            until = min(time.monotonic() + LOAD_SECONDS, deadline - 15)
            while time.monotonic() < until:
                faults.make_one()
                time.sleep(AFTERMATH)
            quiet = time.monotonic()
            time.sleep(1)
        has_ended = service.gunicorn.poll() is not None
    return _verdict(outcomes, faults, quiet, has_ended)


class Faults:
    """What is done to the engines, and when it was PostgreSQL's turn."""

    def __init__(self, service: Installation) -> None:
        self._service = service
        self._dice = random.Random(3)
        self.made: Counter[str] = Counter()
        self.windows: list[tuple[float, float]] = []
        self.redis_seconds = 0.0

    def make_one(self) -> None:
        acts: tuple[Callable[[], None], ...] = (
            self.stop_postgres,
            self.freeze_postgres,
            self.refuse_connections,
            self.end_connections,
            self.lock_a_table,
            self.stop_redis,
            self.freeze_redis,
            self.flush_redis,
        )
        least = min(self.made[act.__name__] for act in acts)
        act = self._dice.choice([act for act in acts if self.made[act.__name__] == least])
        act()
        self.made[act.__name__] += 1

    def stop_postgres(self) -> None:
        with self._window(), self._service.stopped(self._service.postgres):
            time.sleep(self._dice.uniform(0, 2))

    def freeze_postgres(self) -> None:
        with self._window(), self._service.frozen(self._service.postgres):
            time.sleep((CUT_AFTER + 3, 0.5)[self.made["freeze_postgres"] % 2])

    def refuse_connections(self) -> None:
        with self._window(), self._service.superuser() as cursor:
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} CONNECTION LIMIT 0")
            cursor.execute(TERMINATE, [APPLICATION_ROLE])
            time.sleep(self._dice.uniform(0.5, 2))
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} CONNECTION LIMIT -1")

    def end_connections(self) -> None:
        with self._window(), self._service.superuser() as cursor:
            for _ in range(10):
                cursor.execute(TERMINATE, [APPLICATION_ROLE])
                time.sleep(0.1)

    def lock_a_table(self) -> None:
        with self._window(), self._service.superuser() as cursor:
            cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            time.sleep(STATEMENT_TIMEOUT + 0.5)
            cursor.execute("ROLLBACK")

    def stop_redis(self) -> None:
        self._without_redis(self._service.stopped)

    def freeze_redis(self) -> None:
        self._without_redis(self._service.frozen)

    def flush_redis(self) -> None:
        client = redis.Redis.from_url(self._service.instance.redis_url)
        for _ in range(10):
            client.flushall()
            client.script_flush()
            time.sleep(0.1)

    def _without_redis(self, away: Callable) -> None:
        seconds = self._dice.uniform(1, 6)
        engine: Server = self._service.redis
        with away(engine):
            time.sleep(seconds)
        self.redis_seconds += seconds

    @contextmanager
    def _window(self) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.windows.append((begun, time.monotonic() + AFTERMATH))

    def explain(self, begun: float, ended: float) -> bool:
        """Whether PostgreSQL was away at some time between."""
        return any(begun <= last and first <= ended for first, last in self.windows)


TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"


def _verdict(outcomes: Outcomes, made: Faults, quiet: float, has_ended: bool) -> Verdict:
    faults = [f"strange: {outcome}" for outcome in outcomes.strange]
    faults += [
        f"503 while PostgreSQL was there: {outcome}"
        for outcome in outcomes
        if outcome.status == 503 and not made.explain(outcome.at, outcome.at + outcome.seconds)
    ]
    faults += [f"too slow: {outcome}" for outcome in outcomes.slower_than(LONGEST)]
    waited = [
        outcome
        for outcome in outcomes.slower_than(REDIS_TIMEOUT * 0.9)
        if not made.explain(outcome.at, outcome.at + outcome.seconds)
    ]
    allowed = WORKERS * (THREADS * made.made["freeze_redis"] + made.redis_seconds / 5 + 1)
    if len(waited) > allowed:
        faults.append(f"{len(waited)} requests waited for Redis, more than {allowed:.0f}")
    if set(outcomes.since(quiet).statuses) != {200}:
        faults.append(f"not recovered: {outcomes.since(quiet).statuses}")
    if has_ended:
        faults.append("gunicorn has ended")
    figure = (
        f"{outcomes}; {made.made.total()} faults {dict(made.made)}; "
        f"{len(waited)} requests waited for Redis"
    )
    return Verdict(figure, faults)
