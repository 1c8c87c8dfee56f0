"""The errors of holds and leases, which show the hold."""

from __future__ import annotations

from typing import Any

from app.core import json_text
from app.core.errors import Conflict
from app.usage.hold_schemas import UsageHoldSchema


class HoldConflict(Conflict):
    """A hold or lease that is not as a request needs it; ``data`` shows it."""

    keys = {"data": {"$ref": "#/components/schemas/UsageHold", "description": "The hold or lease."}}

    def __init__(self, hold: Any = UsageHoldSchema.examples) -> None:
        super().__init__()
        self.hold = hold

    def body(self) -> dict[str, object]:
        """The common body, and the hold as ``data``."""
        shown = UsageHoldSchema().dump(self.hold)
        return {**super().body(), "data": json_text.loads(json_text.dumps_text(shown))}


class HoldEnded(HoldConflict):
    code = "hold_ended"
    detail = "The hold or lease has ended; `data` says how."


class HoldExceeded(HoldConflict):
    """More was used than a hold has and than fits. What the hold had is counted."""

    code = "limit_reached"
    detail = "More was used than is held and free; `over_by` of `data` is not counted."
