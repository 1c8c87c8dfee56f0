"""Time that passes."""

from tests import database


def pass_days(days: int = 1) -> None:
    """Move all counters that have a period, their holds, and the counts of days into the past."""
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
        database.execute(
            "UPDATE usage_days SET day = day - :step, period_start = CASE period_start"
            " WHEN 'epoch' THEN period_start ELSE period_start - :step * interval '1 day' END",
            step=step,
        )
