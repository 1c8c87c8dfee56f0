"""The checks of tenants over their limits, and of trials that have ended."""

from __future__ import annotations

from app.operations import service
from app.operations.checks.finding import SHOWN, Finding, shortened


def check_limits() -> Finding:
    """Hint at the tenants that use more than their limits."""
    tenants = service.LIST_OVER_LIMITS.all(limit=SHOWN + 1)
    if not tenants:
        return Finding("limits", True, "no tenant uses more than its plan allows")
    listed = shortened([f"{one.slug}: {' '.join(one.features)}" for one in tenants], "; ")
    fix = "These tenants use more than their limits. Override the limits, or change the plans."
    return Finding("limits", True, f"exceeded by {listed}", fix)


def check_trials() -> Finding:
    """Check that trials are ended when they are over."""
    overdue = service.overdue_trials()
    if not overdue:
        return Finding("trials", True, "each that is over has been ended")
    fix = "Run flask jobs background and flask jobs worker; they end the trials that are over."
    return Finding("trials", False, f"{overdue} over, but not ended", fix)
