"""Five simulated billing providers send signed events, out of order and some twice, while workers, readers
and schedulers are killed and Redis is emptied: each event is applied once, and no subscription differs
from its provider at the end.

Of three providers the subscriptions are read with an API key; the payloads of two are applied.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from multiprocessing.context import ForkServerProcess
from typing import Any

from flask import Flask
from redis import Redis

from app.billing import reconcile
from app.billing.models import BillingComparison
from app.billing.providers import PROVIDERS
from app.core.jobs.queues import Queue
from app.inbox.jobs import process_events
from app.plans.models import PlanPrice
from app.subscriptions.models import Subscription
from tests.billing.reading import service, settings_of
from tests.billing.simulated.base import Event, Line, Simulated
from tests.billing.simulated.lives import PAIRS
from tests.database import query, rows
from tests.factories import create_limits, create_tenant, limit_flag, save
from tests.faults import _worker
from tests.faults._engines import private_engines

SHARES = {"stripe": 30, "paddle": 30, "polar": 30, "lemonsqueezy": 7, "chargebee": 3}
"""Of 100 events. The last two allow few reads in a minute."""
WITHOUT_KEY = ("paddle", "polar")
SECRET = "whsec_ZmF1bHRzIGFyZSBtYWRlIG9uIHB1cnBvc2UgaGVyZQ=="
SECRETS = {name: "user:password" if name == "chargebee" else SECRET for name in PAIRS}
POSTERS = 4
LATE = 40  # events that are held back, of which any one is sent next
TWICE = 0.1  # the share of events that are sent twice
KILLS = 40  # events for which a process is killed once, at least
LEASE = 5  # seconds after which an event that a killed reader had is read again
PATIENCE = 600  # seconds that the rest may take
UNFINISHED = "SELECT count(*) AS number FROM webhook_events WHERE status = 'pending'"
STARTS: Mapping[str, Callable[[Mapping[str, str]], ForkServerProcess]] = {
    "worker": partial(_worker.start, queues=list(Queue)),
    "reader": partial(_worker.start_reader, lease=LEASE),
    "scheduler": _worker.start_scheduler,
}


@dataclass
class Report:
    events: int = 0
    repeated: int = 0
    ignored: int = 0
    changes: int = 0
    subscriptions: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{number} × {name}" for name, number in sorted(self.kills.items()))
        return (
            f"{self.events} events of five providers, {self.repeated} sent twice, each applied once"
            f" or known to be old ({self.ignored}): {self.changes} changes of {self.subscriptions}"
            f" subscriptions, none of which differs; {self.kills.total()} kills ({kills}), Redis"
            f" emptied once; {self.seconds:.0f} s"
        )


def prove(
    app: Flask, environment: Mapping[str, str], *, events: int = 5_000, sweeping: bool = True
) -> Report:
    """Send so many events, break, wait, and count; AssertionError where anything is wrong.

    It runs on engines of its own, which ``app`` does not use. Events whose job was lost wait for
    the sweeper, or with ``sweeping`` false for a job that is pushed at once.
    """
    report, started = Report(), time.monotonic()
    with ExitStack() as hooks:
        accounts = {
            name: hooks.enter_context(simulated(secret=SECRETS[name]).serving())
            for name, (simulated, _) in PAIRS.items()
        }
        settings = {"BILLING_RECONCILE_HOURS": "0", **settings_of(*accounts.values())}
        for name in WITHOUT_KEY:
            del settings[f"{name.upper()}_API_KEY"]
        found = hooks.enter_context(private_engines(**settings))
        create_limits("team", limit_flag("seats"))
        for name, account in accounts.items():
            save(PlanPrice, provider=name, price_id=account.price_id("team"), plan_name="team",
                 limit_key="seats", is_pending=False)  # fmt: skip
        with _processes(found.environment, report) as killing:
            _send(
                found.app, accounts, events, report, Redis.from_url(found.environment["REDIS_URL"])
            )
            while report.kills.total() < events / KILLS:
                time.sleep(0.1)
            killing.clear()
            if not sweeping:
                with found.app.app_context():
                    process_events.push()
            _wait()
        _check_events(report)
        _check_changes(accounts, report)
        with service(found.environment, *accounts.values()) as compared:
            _check_drift(compared)
    report.seconds = time.monotonic() - started
    return report


def _send(
    app: Flask, accounts: Mapping[str, Simulated], events: int, report: Report, redis: Redis
) -> None:
    """Let subscriptions live, and send what is told of them."""
    dice, held = random.Random(), list[tuple[Simulated, Event]]()
    lives = {name: _live(account, dice) for name, account in accounts.items()}
    with ThreadPoolExecutor(POSTERS) as posters:
        sent = list[Future[None]]()
        while report.events < events or held:
            if report.events < events:
                (name,) = dice.choices(list(SHARES), list(SHARES.values()))
                told = next(lives[name])
                report.events += len(told)
                held += [(accounts[name], event) for event in told]
            while held and (len(held) > LATE or report.events >= events):
                one = held.pop(dice.randrange(len(held)))
                is_repeated = dice.random() < TWICE
                report.repeated += is_repeated
                for _ in range(1 + is_repeated):
                    sent.append(posters.submit(_post, app, *one))
                if len(sent) == events // 2:
                    redis.flushall()
                sent[max(0, len(sent) - 2 * POSTERS)].result()
        for each in sent:
            each.result()


def _live(account: Simulated, dice: random.Random) -> Iterator[list[Event]]:
    """The events of one random change after the other."""
    customer = account.create_customer(is_told=False)
    tenant = create_tenant().slug
    while True:
        alive = [one for one in account.in_order if not one.has_ended]
        line = Line("team", dice.randint(1, 50))
        if len(alive) < 5 or dice.random() < 0.1:
            account.create(line, tenant=tenant, customer=customer)
        elif dice.random() < 0.3:
            account.change(dice.choice(alive), line)
        elif dice.random() < 0.1:
            account.advance(timedelta(days=dice.randint(1, 20)))
        elif changes := account.possible(one := dice.choice(alive)):
            account.apply(dice.choice(changes), one)
        account.advance(timedelta(seconds=1))
        yield account.take()


def _post(app: Flask, account: Simulated, event: Event) -> None:
    path = f"/webhooks/billing/{account.name}"
    while True:
        answer = app.test_client().post(path, data=event.body, headers=account.headers(event))
        if answer.status_code == 200:
            return
        assert answer.status_code == 503, answer.text
        time.sleep(0.2)


@contextmanager
def _processes(environment: Mapping[str, str], report: Report) -> Iterator[threading.Event]:
    """Two workers and readers and a scheduler; while the event is set, one is killed each second."""
    done, killing = threading.Event(), threading.Event()
    killing.set()
    names = ["worker", "worker", "reader", "reader", "scheduler"]
    alive = [(name, STARTS[name](environment)) for name in names]

    def keep() -> None:
        while not done.wait(0.7):
            if killing.is_set():
                name, process = alive.pop(random.randrange(len(alive)))
                _worker.kill(process)
                report.kills[name] += 1
                alive.append((name, STARTS[name](environment)))

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield killing
    finally:
        done.set()
        thread.join()
        for _, process in alive:
            _worker.kill(process)


def _wait() -> None:
    ends = time.monotonic() + PATIENCE
    while left := query(UNFINISHED)[0].number:
        assert time.monotonic() < ends, f"{left} events are not applied"
        time.sleep(0.5)


def _check_events(report: Report) -> None:
    """Each event is stored once, and is applied or known to be old."""
    found = Counter(
        {(one.status, one.detail): one.number for one in query(
            "SELECT status, detail, count(*) AS number FROM webhook_events GROUP BY 1, 2"
        )}
    )  # fmt: skip
    assert found.total() == report.events, found
    report.ignored = sum(number for (status, _), number in found.items() if status == "ignored")
    wrong = [key for key in found if key[0] not in ("succeeded", "ignored")]
    assert wrong == [], found


def _check_changes(accounts: Mapping[str, Simulated], report: Report) -> None:
    """Each change is recorded once: it begins with what the one before it has left."""
    known: dict[Any, dict[str, Any]] = {}
    requests = Counter[str]()
    changes = query(
        "SELECT action, target_id, before, after, request_id FROM audit_events"
        " WHERE target_type = 'subscription' ORDER BY id"
    )
    for one in changes:
        requests[one.request_id] += 1
        if one.action == "subscription.created":
            assert one.target_id not in known, one
            known[one.target_id] = dict(one.after)
            continue
        row = known[one.target_id]
        assert {name: row.get(name) for name in one.before} == one.before, (one, row)
        row.update(one.after)
    assert [each for each, number in requests.items() if number > 1] == []
    report.changes = len(changes)
    report.subscriptions = len(rows(Subscription))
    told = sum(len(account.in_order) for account in accounts.values())
    assert len(known) == report.subscriptions == told


def _check_drift(app: Flask) -> None:
    with app.app_context():
        for provider in PROVIDERS.values():
            found = [one for page in reconcile.preview(provider) for one in page if one.kinds]
            assert found == [], (provider.name, found)
    assert rows(BillingComparison) == []
