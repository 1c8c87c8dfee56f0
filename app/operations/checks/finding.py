"""What one check has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``fix`` says how to correct a fault, or is a hint where it is ok."""

    check: str
    ok: bool
    found: str
    fix: str = ""

    @property
    def result(self) -> str:
        """``ok``, ``hint`` or ``FAULT``."""
        if not self.ok:
            return "FAULT"
        return "hint" if self.fix else "ok"
