"""Charts as SVG, made here: no script, and no inline style."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from app.core.json_text import Json

WIDTH, HEIGHT, GAP = 480, 96, 4
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
    step = WIDTH / len(shown)
    width = min(40.0, step - GAP)
    parts = []
    for place, each in enumerate(shown):
        height = round(each["used"] / highest * (HEIGHT - 12), 1)
        start = (each["period_start"] or "")[:10]
        parts.append(
            Markup(
                '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2">'
                "<title>{}: {}</title></rect>"
            ).format(
                "current" if each["is_current"] else "past",
                round(place * step + (step - width) / 2, 1),
                round(HEIGHT - height, 1),
                round(width, 1),
                height,
                start,
                each["used"],
            )
        )
    if most is not None and most >= 0:
        line = round(HEIGHT - most / highest * (HEIGHT - 12), 1)
        parts.append(
            Markup('<line class="limit" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDTH, line, line)
        )
    label = f"Usage of the last {len(shown)} periods"
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts))
