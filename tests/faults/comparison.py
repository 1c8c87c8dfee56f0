"""100,000 subscriptions of a simulated Stripe, of which 1,000 differ here, are compared at the
provider's own rate, in the memory of a comparison with a tenth of them.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from flask import Flask

from tests import database
from tests.billing.reading import settings_of
from tests.billing.simulated.stripe import Stripe
from tests.billing.simulated.stripe import Subscription as Simulation
from tests.factories import create_preset, create_tenant
from tests.running.serving import PROJECT

EACH = 100  # the place of each subscription that differs
AT_ONCE = 2_000  # rows that one statement inserts
MOST_SECONDS = 30 * 60
MOST_GROWTH = 16 * 1024  # KiB
TENANTS = 200
COPIES = """
    INSERT INTO subscriptions SELECT (jsonb_populate_record(s, jsonb_build_object(
        'id', gen_random_uuid(), 'tenant_id', (CAST(:tenants AS uuid[]))[1 + n % :number],
        'bp_subscription_id', 'sub_' || lpad(n::text, 14, '0'),
        'items', jsonb_set(s.items::jsonb, '{0,id}',
            to_jsonb('si_' || lpad(n::text, 10, '0') || '0000'))))).*
    FROM subscriptions s, generate_series(:first, :last) n WHERE s.bp_subscription_id = :id
"""


@dataclass
class Report:
    subscriptions: list[int] = field(default_factory=list)
    repaired: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    peak_kib: list[int] = field(default_factory=list)


def prove(
    app: Flask, environment: Mapping[str, str], *, sizes: Sequence[int] = (10_000, 100_000)
) -> Report:
    """Compare; AssertionError if it takes too long, needs more memory, or leaves something out."""
    report = Report()
    create_preset("free")
    tenants = [create_tenant() for _ in range(TENANTS)]
    with Stripe(secret="whsec_dGVzdA==").serving() as account:
        environment = {**environment, **settings_of(account)}
        Path(environment["PROMETHEUS_MULTIPROC_DIR"]).mkdir(exist_ok=True)
        owners = {"tenants": [one.id for one in tenants], "number": TENANTS}
        first = account.create(is_told=False, tenant=tenants[0].slug)
        _compare(environment)
        for size in sizes:
            known = len(account.in_order)
            for after in range(known, size, AT_ONCE):
                last = min(after + AT_ONCE, size)
                database.execute(COPIES, first=after + 1, last=last, id=first.id, **owners)
            for number in range(known + 1, size + 1):
                _copy(account, first, number)
            for different in account.in_order[EACH - 1 :: EACH]:
                change = "recover" if "recover" in account.possible(different) else "fail"
                account.apply(change, different, is_told=False)
            started = time.monotonic()
            counts, peak = _compare(environment)
            assert (counts["compared"], counts["repaired"]) == (size, size // EACH), counts
            report.subscriptions.append(size)
            report.repaired.append(counts["repaired"])
            report.seconds.append(time.monotonic() - started)
            report.peak_kib.append(peak)
    assert report.seconds[-1] < MOST_SECONDS, report
    assert report.peak_kib[-1] - report.peak_kib[0] < MOST_GROWTH, report
    return report


def _copy(account: Stripe, of: Simulation, number: int) -> None:
    one = replace(of, id=account.id_of("subscription", number), number=number)
    account.subscriptions[one.id] = one
    account.in_order.append(one)


def _compare(environment: Mapping[str, str]) -> tuple[dict[str, int], int]:
    """The numbers of a comparison, and the most memory that its process had, in KiB."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flask",
            "--app",
            "wsgi",
            "billing",
            "reconcile",
            "stripe",
            "--json",
        ],
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
    )
    peak = 0
    while process.poll() is None:
        with suppress(OSError):  # it has just ended
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = int(found[1]) if found else peak
        time.sleep(0.1)
    printed, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(printed), peak
