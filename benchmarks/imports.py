"""``python -m benchmarks import``: a file of users with memberships, as ``flask import`` applies it.

The file is one tenant, then each user with their membership. A second import of the same file
changes nothing.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.dataset import DEPARTMENTS
from benchmarks.stage import PROJECT, Stage

ORGANIZATION = "org_imported"


def report(stage: Stage, users: int) -> str:
    """Seconds, users per second and the memory of the importing process."""
    file = stage.folder / "users.jsonl"
    with file.open("w") as opened:
        opened.writelines(f"{json.dumps(line)}\n" for line in lines(users))
    size = file.stat().st_size / 1e6
    results = [f"{users:,} users with memberships, {size:.0f} MB of JSON Lines"]
    for title in ("first", "again"):
        started = time.monotonic()
        result = run(stage, file)
        seconds = time.monotonic() - started
        counts = {kind: _nonzero(numbers) for kind, numbers in result["counts"].items()}
        results.append(f"{title}: {seconds:.1f} s, {users / seconds:,.0f} users/s, {counts}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return "\n".join([*results, f"peak RSS of the largest process: {peak:.0f} MiB"])


def lines(users: int) -> Iterator[dict[str, Any]]:
    """The file's lines."""
    yield {"type": "tenant", "idp_org_id": ORGANIZATION, "name": "Imported Ltd"}
    for number in range(users):
        person = {"idp_org_id": ORGANIZATION, "idp_user_id": f"user_imported_{number:08}"}
        yield {
            "type": "user",
            **person,
            "email": f"person{number}@imported.example.com",
            "first_name": f"First{number}",
            "last_name": f"Last{number}",
            "meta_data": {"department": DEPARTMENTS[number % len(DEPARTMENTS)], "desk": number},
        }
        yield {"type": "membership", **person, "role": "owner" if number == 0 else "member"}


def run(stage: Stage, file: Path) -> dict[str, Any]:
    """What ``flask import --json`` prints."""
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "import", str(file), "--json"]
    done = subprocess.run(
        command, cwd=PROJECT, env=stage.environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"flask import failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _nonzero(numbers: dict[str, int]) -> dict[str, int]:
    return {outcome: number for outcome, number in numbers.items() if number}
