"""What one check has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

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

    @property
    def result(self) -> str:
        """The level as the doctor prints it: ``ok``, ``hint`` or ``FAULT``."""
        return "FAULT" if self.level is Level.FAULT else self.level.value


def shortened(texts: Sequence[str], separator: str) -> str:
    """The first :data:`SHOWN` texts, and whether there are more."""
    return separator.join([*texts[:SHOWN], *(["…"] if len(texts) > SHOWN else [])])
