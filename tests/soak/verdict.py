"""What a proof found."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Its figure in one line, and what speaks against it."""

    figure: str
    faults: Sequence[str]

    @property
    def holds(self) -> bool:
        return not self.faults
