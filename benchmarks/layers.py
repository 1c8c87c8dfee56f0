"""``python -m benchmarks layers``: where a GET, a list, a PATCH and a receipt spend their time.

The requests go through Flask's test client under cProfile, which makes Python code look slower
next to C code than it is. Read the shares, not the sums.
"""

from __future__ import annotations

import contextlib
import cProfile
import io
import pstats
from collections import Counter
from pathlib import Path

from flask.testing import FlaskClient
from werkzeug.datastructures import Headers

from app import create_app
from benchmarks.items import ITEMS, Item, Population
from benchmarks.stage import PROJECT, Stage

REQUESTS, WARM_UP = 500, 30
MEASURED = ("user", "users", "subscription", "webhook")
BUILT_IN = "~"  # the file name that cProfile gives to functions written in C


def report(stage: Stage) -> str:
    """Microseconds per request: in our folders, and in each library with its C functions."""
    population = Population(stage)
    items = [item for item in ITEMS if item.name in MEASURED]
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        spent = [_spent(client, item, population) for item in items]
    sums = [sum(layers.values()) for layers in spent]
    names = Counter[str]()
    for layers in spent:
        names += layers
    shown = [
        name
        for name, _ in names.most_common()
        if any(layers[name] > total / 50 for layers, total in zip(spent, sums, strict=True))
    ]
    lines = [
        "| layer | " + " | ".join(item.title for item in items) + " |",
        "|---|" + "--:|" * len(items),
    ]
    for name in shown:
        cells = (
            f"{layers[name] / REQUESTS * 1e6:.0f} ({layers[name] / total:.0%})"
            for layers, total in zip(spent, sums, strict=True)
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spent(client: FlaskClient, item: Item, population: Population) -> Counter[str]:
    """Seconds in each layer, of all measured requests."""
    requests = item.requests(population, WARM_UP + REQUESTS)
    profile = cProfile.Profile()
    for number, raw in enumerate(requests):
        if number == WARM_UP:
            profile.enable()
        _send(client, raw)
    profile.disable()
    return _by_layer(pstats.Stats(profile))


def _send(client: FlaskClient, raw: bytes) -> None:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, path, _ = first.split(" ")
    headers = Headers(
        [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    )
    answer = client.open(path, method=method, headers=headers, data=body or None)
    if answer.status_code >= 300:
        raise SystemExit(f"{first}: {answer.status} {answer.text}")


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
    if "psycopg2" in name or "select.poll" in name:
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
