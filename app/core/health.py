"""What the ``health`` module of a domain reports.

``CHECKS`` has a function for each finding, by the finding's name; ``metrics`` yields what
``/metrics`` shows. Either may be absent. All run in the platform's scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client.core import GaugeMetricFamily, Metric

LONGEST_LAG = 60.0  # seconds; events and deliveries that wait longer are a fault
SHOWN = 10  # items of a list in one finding


class Level(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    HINT = "hint"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``fix`` says how to correct a fault, or is a hint where it is ok."""

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
    """The first :data:`SHOWN` texts, and whether there are more."""
    return separator.join([*texts[:SHOWN], *(["…"] if len(texts) > SHOWN else [])])


def gauge(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    """A gauge with one value for each value of ``label``."""
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for labelled, value in values.items():
        family.add_metric([labelled], value)
    return family
