"""Each identity provider tells a history of thirty events over three tenants, in two hundred random
orders and with duplicates: the rows it leaves are always the same, and what the provider holds.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from flask import Flask

from tests.identity_sync.histories import SIMULATED, history
from tests.identity_sync.orders import check_truth, deliver, shuffled


@dataclass
class Report:
    providers: int = 0
    orders: int = 0
    events: int = 0
    seconds: float = 0


def prove(app: Flask, environment: Mapping[str, str], *, orders: int = 200) -> Report:
    """Deliver and compare; AssertionError where an order ends otherwise."""
    report, started = Report(), time.monotonic()
    for name in SIMULATED:
        world = history(name, seed=2)
        assert len(world.events) >= 30
        assert len(world.organizations) == 3
        expected = deliver(app, name, world.events)
        check_truth(world, expected)
        for seed in range(orders):
            order = shuffled(world.events, seed)
            assert deliver(app, name, order) == expected, (name, seed)
            report.orders += 1
            report.events += len(order)
        report.providers += 1
    report.seconds = time.monotonic() - started
    return report
