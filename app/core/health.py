"""The types that the ``health`` modules of the domains use.

In such a module ``CHECKS`` maps the name of each finding to a function, ``metrics()`` yields metrics
for ``/metrics``, and ``WORK`` maps the name of each number of ``GET /v1/operations/work`` to a SELECT
of what is counted, and to the path of the list of it. In these ``{days}`` stands for the span that
counts, ``{soon}`` and ``{since}`` for its end and its beginning, and ``{month}`` for the moment in
30 days. All are optional. All functions run in the platform's scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client.core import GaugeMetricFamily, Metric

LONGEST_LAG = 60.0  # seconds; it is a fault if events or deliveries wait longer
SHOWN = 10  # the most items of a list in one finding


class Level(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    HINT = "hint"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """The result of one check. ``fix`` says how to correct a fault; with ``ok`` it is a hint."""

    check: str
    ok: bool
    found: str
    fix: str = ""

    @property
    def level(self) -> Level:
        if not self.ok:
            return Level.FAULT
        return Level.HINT if self.fix else Level.OK


def shortened(texts: Sequence[str], separator: str) -> str:
    """The first :data:`SHOWN` texts, joined; ``…`` at the end means that there are more."""
    return separator.join([*texts[:SHOWN], *(["…"] if len(texts) > SHOWN else [])])


def gauge(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    """A gauge with one value for each value of ``label``."""
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for labelled, value in values.items():
        family.add_metric([labelled], value)
    return family
