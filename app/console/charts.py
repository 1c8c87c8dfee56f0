"""Charts as SVG, made here: no script, and no inline style."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from markupsafe import Markup

from app.console import words
from app.core.json_text import Json

WIDTH, HEIGHT, GAP = 480, 96, 4
TALLEST = HEIGHT - 12
AHEAD = 14  # the most days that a chart shows after today
PACE_DAYS = 7
NEARLY = 0.8  # the part of a limit from which on its bar warns


def share(period: Json) -> float:
    """The used part of a limit, from 0 to 1; 0 for one without a limit."""
    most = period["limit"]
    if most is None or most < 0:
        return 0.0
    return min(1.0, period["used"] / most) if most else 1.0


def meter(period: Json) -> Markup:
    """A bar of what is used of a limit; nothing for one without a limit."""
    if period["limit"] is None or period["limit"] < 0:
        return Markup("")
    part = share(period)
    kind = "over" if part == 1 else "nearly" if part >= NEARLY else "fine"
    return Markup(
        '<svg class="meter {}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="6" rx="3"/>'
        '<rect class="used" width="{}" height="6" rx="3"/></svg>'
    ).format(kind, round(part * 100, 1))


def bars(periods: Sequence[Json]) -> Markup:
    """A bar for each period, the oldest first, and a line at the current limit."""
    if len(periods) < 2:
        return Markup("")
    shown = list(reversed(periods))
    most = periods[0]["limit"]
    highest = max(1, *(each["used"] for each in shown), most if most is not None else 0)
    heights = [each["used"] / highest for each in shown]
    titles = [f"{(each['period_start'] or '')[:10]}: {each['used']}" for each in shown]
    parts = _bars(heights, titles, WIDTH / len(shown), [each["is_current"] for each in shown])
    if most is not None and most >= 0:
        parts.append(_line("limit", 0, WIDTH, most / highest))
    return _chart(f"Usage of the last {len(shown)} periods", parts)


def day_bars(days: Sequence[Json], forecast: Json) -> Markup:
    """A bar for each day, a line at the pace of the last 7 days, and one where the limit ends."""
    if not any(each["used"] for each in days):
        return Markup("")
    pace = forecast["pace_per_day"]
    ends = forecast["ends_at"] and datetime.fromisoformat(forecast["ends_at"]).date()
    left = (ends - date.fromisoformat(days[-1]["day"])).days if ends else AHEAD
    highest = max(1, pace, *(each["used"] for each in days))
    ahead = min(left, AHEAD) if pace else 0
    step = WIDTH / (len(days) + ahead)
    heights = [max(0, each["used"]) / highest for each in days]
    titles = [f"{words.day(each['day'] + 'T00:00Z')}: {each['used']:,}" for each in days]
    parts = _bars(heights, titles, step, [each is days[-1] for each in days])
    if pace:
        parts.append(_line("forecast", (len(days) - PACE_DAYS) * step, WIDTH, pace / highest))
    if ends and left <= AHEAD:
        parts.append(
            Markup('<line class="end" x1="{0}" x2="{0}" y1="12" y2="{1}"/>').format(
                WIDTH - 1, HEIGHT
            )
        )
    return _chart(f"What each of the last {len(days)} days has used", parts)


def _bars(
    heights: Sequence[float], titles: Sequence[str], step: float, current: Sequence[bool]
) -> list[Markup]:
    """A bar in each of the columns, which are ``step`` wide; a height is from 0 to 1."""
    width = min(40.0, step - GAP)
    bar = Markup(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>'
    )
    bars = []
    for place, (part, title, is_current) in enumerate(zip(heights, titles, current, strict=True)):
        kind, height = "current" if is_current else "past", round(part * TALLEST, 1)
        x, y = round(place * step + (step - width) / 2, 1), round(HEIGHT - height, 1)
        bars.append(bar.format(kind, x, y, round(width, 1), height, title))
    return bars


def _line(kind: str, start: float, end: float, part: float) -> Markup:
    y = round(HEIGHT - part * TALLEST, 1)
    return Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        kind, round(start, 1), round(end, 1), y, y
    )


def _chart(label: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts))
