"""Time that passes."""

from tests import database


def pass_days(days: int = 1) -> None:
    """Move all counters that have a period into the past, with their holds."""
    for step in (-10_000, 10_000 + days):  # not at once: no two rows may meet
        database.execute(
            "UPDATE usage_counters SET period_start = period_start - :step * interval '1 day',"
            " period_end = period_end - :step * interval '1 day' WHERE period_end IS NOT NULL",
            step=step,
        )
        database.execute(
            "UPDATE usage_holds SET period_start = period_start - :step * interval '1 day'"
            " WHERE period_start > 'epoch'",
            step=step,
        )
