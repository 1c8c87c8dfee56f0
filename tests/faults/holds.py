"""Client processes consume, hold, extend, settle and release units of a limit and of a balance of credits
over HTTP, while they, web processes, workers and schedulers are killed, and PostgreSQL restarts and
crashes: at every moment no more than the limit is used and held, and the ledger is balanced. In the
end each acknowledged request has had its effect exactly once, and nothing is held.

The credits are used directly, and by a limit that takes three of them for each unit. Units that are
given back, and grants, leave something to be taken.
"""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from uuid import UUID

from flask import Flask

from app.core.jobs.queues import Queue
from app.credits.jobs import refresh_credits
from app.dev.engines.instance import Instance
from app.dev.engines.sharing import Engines
from app.extensions import db
from app.usage.jobs import sweep_holds
from app.usage.models import UsageHold, UsageKey
from app.usage.service import Request
from tests import factories
from tests.credits.ledger import assert_balanced
from tests.database import query, rows
from tests.faults import _hold_client, _worker
from tests.faults._engines import PrivateEngines
from tests.faults._hold_client import Exchange, exchanges
from tests.faults._service import Service
from tests.ports import free_port
from tests.running.serving import HOST, wait_until

UNITS = 30  # of the limit, for each client
PLANNED = 100  # credits that the plan grants
RATES = {"calls": 0, "images": 3, "tokens": 1}  # credits for a unit
EVERY = 0.5  # seconds between two kills, at least
LOOKING = 0.05  # seconds between two looks
PATIENCE = 180  # seconds
ANSWERS = {
    "consume": {"200", "409 limit_reached", "409 usage_below_zero"},
    "holds": {"201", "409 limit_reached"},
    "extend": {"200", "409 hold_ended"},
    "settle": {"200", "409 limit_reached"},
    "release": {"204"},
    "credits": {"200"},
    "grants": {"201", "422"},  # sent again when the lot would have expired
    "revoke": {"200"},
}
COUNTERS = """
    SELECT c.feature, c.used, c.held,
        coalesce(sum(h.amount) FILTER (WHERE h.state = 'open'), 0) AS open
    FROM usage_counters c LEFT JOIN usage_holds h USING (tenant_id, feature, period_start)
    GROUP BY c.feature, c.used, c.held
"""
MISTAKEN = """
    SELECT FROM usage_holds h
        LEFT JOIN credit_holds c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id
    WHERE h.state = 'open' AND h.credits IS NOT NULL AND h.expires_at > clock_timestamp()
    GROUP BY h.id, h.amount, h.rate HAVING coalesce(sum(c.amount), 0) <> h.amount * h.rate
"""  # live holds that have not taken the credits for what they hold
BELOW_ZERO = """
    SELECT FROM credit_lots WHERE remaining < 0 UNION ALL
    SELECT FROM credit_balances WHERE balance < 0 UNION ALL
    SELECT FROM usage_counters WHERE used < 0
"""
ENDED = "SELECT count(*) FROM usage_holds WHERE state <> 'open'"
LIVE = "SELECT FROM usage_holds WHERE state = 'open' AND expires_at > now()"
NOT_SWEPT = "SELECT FROM usage_holds WHERE state = 'open' UNION ALL SELECT FROM credit_holds"
GRANTED = "SELECT id, granted FROM credit_lots WHERE source = 'promotion'"
LEDGER = "SELECT kind, sum(amount) AS amount FROM credit_entries GROUP BY kind"
OVERRUNS = (
    "SELECT after->>'hold_id' AS hold_id, (after->>'over_by')::bigint AS over_by"
    " FROM audit_events WHERE action = 'limit.overrun'"
)


@dataclass
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    outages: int = 0  # of PostgreSQL
    looks: int = 0
    limit: int = 0
    most: int = 0  # of it used and held at once
    answers: Counter[str] = field(default_factory=Counter)
    repeated: int = 0  # requests that were sent more than once
    late: int = 0  # settled after they had expired
    overruns: int = 0
    expired: int = 0
    seconds: float = 0.0


@dataclass
class Processes:
    """Those of the service and of the clients. For each that is killed another starts."""

    service: Service
    starts: Sequence[tuple[str, Callable[[], ForkServerProcess]]]

    def __post_init__(self) -> None:
        self.running = [start() for _, start in self.starts]

    def kill(self) -> str:
        """Kill one of them; returns its kind."""
        if random.random() < 0.3:
            self.service.kill_one()
            return "web"
        place = random.randrange(len(self.starts))
        name, start = self.starts[place]
        assert self.running[place].is_alive(), name
        _worker.kill(self.running[place])
        self.running[place] = start()
        return name

    def wait_for(self, kind: str) -> None:
        """Return once all of this kind have ended without an error."""
        for (name, _), process in zip(self.starts, self.running, strict=True):
            if name == kind:
                process.join(PATIENCE)
                assert process.exitcode == 0

    def kill_all(self) -> None:
        for process in self.running:
            _worker.kill(process)


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    clients: int = 8,
    workers: int = 2,
    holds: int = 3_000,
    outages: int = 2,
    sweeping: bool = True,
) -> Report:
    """Kill until so many ``holds`` have ended, and compare; AssertionError where anything is wrong.

    With ``outages`` no other program may use the PostgreSQL of ``environment``. What is held at the
    end waits for the scheduler, or with ``sweeping`` false for jobs that are pushed at once.
    """
    report, started = Report(limit=clients * UNITS), time.monotonic()
    found = PrivateEngines(Engines.of(Instance.at(environment["INSTANCE_DIR"])), environment, app)
    with (
        tempfile.TemporaryDirectory() as name,
        Service(environment, Path(name), port := free_port()) as service,
        ExitStack() as stack,
    ):
        journals, ended = Path(name), Path(name, "ended")
        starts = _clients(f"http://{HOST}:{port}", journals, ended, clients, report.limit)
        starts += [("scheduler", partial(_worker.start_scheduler, environment))]
        worker = partial(_worker.start, environment, [Queue.MAINTENANCE])
        processes = Processes(service, [*starts, *workers * [("worker", worker)]])
        stack.callback(processes.kill_all)
        _disturb(found, processes, report, holds, outages)
        ended.touch()
        processes.wait_for("client")
        wait_until(lambda: not query(LIVE), PATIENCE)
        _look(report)
        if not sweeping:
            _push(app)
        wait_until(lambda: not query(NOT_SWEPT), PATIENCE)
        _look(report)
        _compare(report, [each for path in journals.glob("*.jsonl") for each in exchanges(path)])
    report.seconds = time.monotonic() - started
    return report


def _clients(
    url: str, folder: Path, ended: Path, number: int, limit: int
) -> list[tuple[str, Callable[[], ForkServerProcess]]]:
    """A tenant with the limits, and how to start its clients, and one that grants it credits."""
    images = factories.limit_flag(
        "images", -1, burns={"credits": "tokens", "rate": RATES["images"]}
    )
    tokens = factories.credits_flag("tokens", PLANNED)
    factories.create_limits("free", factories.limit_flag("calls", limit), images, tokens)
    tenant = factories.create_tenant()
    key = factories.create_api_key(tenant, ["usage:write"])
    platform = factories.create_api_key(None, ["usage:read", "usage:write"])
    granting = (_hold_client.grant, url, platform, folder / "g.jsonl", ended, str(tenant.id))
    using = [(_hold_client.use, url, key, folder / f"{n}.jsonl", ended) for n in range(number)]
    return [("client", partial(_start, *each)) for each in (granting, *using)]


def _start(target: Callable[..., None], *args: Any) -> ForkServerProcess:
    process = _worker.context.Process(target=target, args=args)
    process.start()
    return process


def _disturb(
    found: PrivateEngines, processes: Processes, report: Report, holds: int, outages: int
) -> None:
    """Kill processes, and let PostgreSQL crash and restart, until so many holds have ended."""
    planned = [found.crash_postgres, found.restart_postgres][:outages]
    before, killed = 0, time.monotonic()
    while before < holds:
        time.sleep(LOOKING)
        _look(report)
        ((ended,),) = query(ENDED)
        if time.monotonic() < killed + EVERY or ended == before:
            assert time.monotonic() < killed + PATIENCE
            continue
        report.kills[processes.kill()] += 1
        before, killed = ended, time.monotonic()
        _push(found.app)
        if planned and ended > holds * (report.outages + 1) / (outages + 1):
            planned.pop(0)()
            report.outages += 1
            with found.app.app_context():
                db.engine.dispose()  # its connections are cut


def _push(app: Flask) -> None:
    with app.app_context():
        sweep_holds.push()
        refresh_credits.push()


def _look(report: Report) -> None:
    for counter in query(COUNTERS):
        assert counter.held == counter.open
        if counter.feature == "calls":
            assert counter.used + counter.held <= report.limit
            report.most = max(report.most, counter.used + counter.held)
    assert query(MISTAKEN) == []
    assert query(BELOW_ZERO) == []
    assert_balanced()
    report.looks += 1


def _compare(report: Report, found: Sequence[Exchange]) -> None:
    """Each answer is allowed, and what it says is stored, exactly once."""
    for each in found:
        code = each.answer.get("code", "")
        assert f"{each.status} {code}".strip() in ANSWERS[each.action], each
        report.answers[f"{each.action} {each.status}"] += 1
        report.repeated += not each.is_certain
    used = _consumed(found)
    used.update(_settled(report, found))
    credits = sum(used[feature] * rate for feature, rate in RATES.items())
    counters = {counter.feature: (counter.used, counter.held) for counter in query(COUNTERS)}
    expected = {**used, "tokens": credits}
    assert counters == {feature: (expected[feature], 0) for feature in RATES}
    _check_ledger(found, credits)


def _consumed(found: Sequence[Exchange]) -> Counter[str]:
    """What was consumed, by feature: exactly what was acknowledged.

    A repeated request that was refused is consumed if its first attempt came later.
    """
    stored, used = {row.digest: row.amount for row in rows(UsageKey)}, Counter[str]()
    for each in found:
        if each.action == "consume":
            amount = stored.pop(_digest(each), None)
            if each.status == 200:
                assert amount == each.body["amount"], each
            elif each.is_certain:
                assert amount is None, each
            used[each.body["feature"]] += amount or 0
    assert stored == {}
    return used


def _settled(report: Report, found: Sequence[Exchange]) -> Counter[str]:
    """What was counted of holds, by feature: exactly what was acknowledged."""
    used, over_by = Counter[str](), {}
    made = {_digest(each): each for each in found if each.action == "holds"}
    ended = {each.target: each for each in found if each.action in ("settle", "release")}
    for row in rows(UsageHold):
        making, end = made.pop(row.digest), ended.pop(str(row.id), None)
        assert (row.feature, row.amount) == (making.body["feature"], making.body["amount"])
        assert making.data["id"] == str(row.id) if making.status == 201 else not making.is_certain
        if end is None:
            assert (row.state, row.counted, row.over_by) == ("expired", 0, 0)
            report.expired += 1
        elif end.action == "release":
            assert (row.state, row.counted, row.over_by) == ("released", 0, 0)
        else:
            assert row.state == end.data["state"] == "settled"
            assert (row.counted, row.over_by) == (end.data["counted"], end.data["over_by"])
            assert row.counted + row.over_by == end.body["amount"]
            report.late += row.is_late
        used[row.feature] += row.counted
        over_by |= {str(row.id): row.over_by} if row.over_by else {}
    assert ended == {}
    assert all(making.status == 409 for making in made.values())
    told = query(OVERRUNS)
    assert dict(told) == over_by
    assert len(told) == len(over_by)
    report.overruns = len(told)
    return used


def _check_ledger(found: Sequence[Exchange], credits: int) -> None:
    """The ledger has each acknowledged grant and revocation once, and what was counted."""
    sums = Counter({kind: int(amount) for kind, amount in query(LEDGER)})
    granted = {
        each.data["id"]: each.data["granted"]
        for each in found
        if each.action == "grants" and each.data
    }
    assert {str(lot): amount for lot, amount in query(GRANTED)} == granted
    assert sums["grant"] == PLANNED + sum(granted.values())
    assert sums["revoke"] == -sum(each.data["revoked"] for each in found if each.action == "revoke")
    assert sums["consume"] == -credits
    assert sums["hold"] + sums["release"] == 0


def _digest(each: Exchange) -> UUID | None:
    """What is stored of the request's idempotency key."""
    return Request(
        feature=each.body["feature"], idempotency_key=each.body["idempotency_key"]
    ).digest
