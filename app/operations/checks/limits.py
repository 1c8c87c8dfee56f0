"""Checks of tenants over their limits, and of trials that have ended."""

from __future__ import annotations

from collections.abc import Iterator

from app.operations.checks.finding import Finding
from app.operations import service

SHOWN = 10  # tenants


def check_limits() -> Iterator[Finding]:
    """A hint at the tenants over their limits, and a fault where trials are not ended."""
    yield _limits()
    yield _trials()


def _limits() -> Finding:
    tenants = service.list_over_limits(SHOWN + 1)
    if not tenants:
        return Finding("limits", True, "no tenant uses more than its plan allows")
    listed = [f"{one.slug}: {' '.join(one.features)}" for one in tenants[:SHOWN]]
    more = ["…"] if len(tenants) > SHOWN else []
    fix = "These tenants use more than their limits. Override the limits, or change the plans."
    return Finding("limits", True, f"exceeded by {'; '.join([*listed, *more])}", fix)


def _trials() -> Finding:
    overdue = service.overdue_trials()
    if not overdue:
        return Finding("trials", True, "each that is over has been ended")
    fix = "Run flask jobs scheduler and flask jobs worker; they end the trials that are over."
    return Finding("trials", False, f"{overdue} over, but not ended", fix)
