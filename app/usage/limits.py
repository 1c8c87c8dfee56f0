"""The state of a limit in one period, and the errors that answer it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from app.core.clock import rfc3339
from app.core.errors import Conflict
from app.plans.flag_types import UNLIMITED, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How much is used and held of a limit in one period.

    ``limit`` and ``policy`` are None for a period that is over, because plans change.
    ``affords`` is what the credits suffice for that the use takes; None: it takes none.
    ``period_start`` and ``resets_at`` are None for a count that never starts anew.
    """

    feature: str
    limit: int | None
    used: int
    held: int = 0
    affords: int | None = None
    policy: str | None
    period_start: datetime | None = None
    resets_at: datetime | None
    is_current: bool = True

    @property
    def remaining(self) -> int | None:
        """The free amount of the limit; None if it is unlimited or the period is over."""
        if self._is_open:
            return self.affords
        free = max(self.limit - self.used - self.held, 0)  # type: ignore[operator]
        return free if self.affords is None else min(free, self.affords)

    @property
    def over_by(self) -> int:
        return 0 if self._is_open else max(self.used - self.limit, 0)  # type: ignore[operator]

    @property
    def _is_open(self) -> bool:
        return self.limit in (None, UNLIMITED)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an amount fits into a limit, and the limit's state after it."""

    allowed: bool
    usage: Usage

    def as_answer(self) -> dict[str, object]:
        """The JSON object that an answer shows.

        It has ``over_by`` for a soft limit, and for a hard limit below the use.
        """
        usage = self.usage
        shown = {
            "allowed": self.allowed,
            "feature": usage.feature,
            "limit": usage.limit,
            "used": usage.used,
            "remaining": usage.remaining,
            "resets_at": None if usage.resets_at is None else rfc3339(usage.resets_at),
            "policy": usage.policy,
        }
        if usage.over_by or usage.policy == Policy.SOFT:
            shown["over_by"] = usage.over_by
        return shown


EXAMPLE = Decision(
    False,
    Usage(
        feature="api-calls",
        limit=1000,
        used=1000,
        policy="hard",
        resets_at=datetime(2026, 2, 1, tzinfo=UTC),
    ),
)


class NotCounted(Conflict):
    """An amount that does not fit into its limit, whose state stays as it is.

    The OpenAPI document shows the body of an instance without arguments.
    """

    keys = {
        "data": {"$ref": "#/components/schemas/UsageDecision", "description": "The limit's state."}
    }

    def __init__(self, decision: Decision = EXAMPLE) -> None:
        super().__init__()
        self.decision = decision

    def body(self) -> dict[str, object]:
        """The common body, and the limit's state as ``data``."""
        return {**super().body(), "data": self.decision.as_answer()}


class LimitReached(NotCounted):
    code = "limit_reached"
    detail = "The amount exceeds what is left of the limit."


class BelowZero(NotCounted):
    """More is given back than is used."""

    code = "usage_below_zero"
    detail = "No more can be given back than is used; give back at most `used` of `data`."
