"""``python -m benchmarks layers``: where one PATCH of a subscription spends its time.

The requests go through Flask's test client under cProfile, which makes Python code look slower
next to C code than it is. Read the shares, not the sum.
"""

from __future__ import annotations

import contextlib
import cProfile
import io
import pstats
from collections import Counter
from pathlib import Path

from app import create_app
from benchmarks.calls import CASES, WARM_UP, credential, patch
from benchmarks.stage import PROJECT, Stage

REQUESTS = 500
BUILT_IN = "~"  # the file name that cProfile gives to functions written in C


def report(stage: Stage) -> str:
    """Microseconds per request and shares: our folders, and each library with its C functions."""
    _, subject, field, values = CASES[0]
    headers = credential(stage, subject)
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        for number in range(WARM_UP):
            patch(client, headers, {field: values[number % 2]})
        profile = cProfile.Profile()
        profile.enable()
        for number in range(REQUESTS):
            patch(client, headers, {field: values[number % 2]})
        profile.disable()
    spent = _by_layer(pstats.Stats(profile))
    total = sum(spent.values())
    lines = ["| layer | µs | share |", "|---|--:|--:|"]
    lines += [
        f"| {name} | {seconds / REQUESTS * 1e6:.0f} | {seconds / total:.0%} |"
        for name, seconds in spent.most_common()
        if seconds > total / 200
    ]
    return "\n".join(lines)


def _by_layer(stats: pstats.Stats) -> Counter[str]:
    """Seconds in each layer's own functions; a C function counts for its caller."""
    spent: Counter[str] = Counter()
    functions = stats.stats  # type: ignore[attr-defined]
    for (file, _, name), (_, _, own, _, callers) in functions.items():
        if file == BUILT_IN and (waits := _waits(name)):
            spent[waits] += own
        elif file == BUILT_IN and callers:
            for (caller, _, _), (_, _, part, _) in callers.items():
                spent[_layer(caller)] += part
        else:
            spent[_layer(file)] += own
    return spent


def _waits(name: str) -> str | None:
    """What a C function waits for, if it does."""
    if "psycopg2" in name or "ursor.execute" in name:
        return "psycopg2 and PostgreSQL"
    return "waiting for Redis" if "recv" in name else None


def _layer(file: str) -> str:
    """Our folder, the library's package, or Python itself."""
    path = Path(file)
    if path.is_relative_to(PROJECT / "app"):
        return str(path.parent.relative_to(PROJECT))
    if path.name in ("test.py", "testing.py"):
        return "the test client"
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1]
    return "Python's library"
