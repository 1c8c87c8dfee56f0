"""``python -m benchmarks calls``: the calls of our own code and the files of one warm PATCH.

The requests go through Flask's test client. Library code is not counted. A generator counts once,
however often it is resumed.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from flask.testing import FlaskClient

from app import create_app
from benchmarks import tokens
from benchmarks.dataset import SUBSCRIPTION, org_id, row_id, subject
from benchmarks.stage import PROJECT, Stage

OURS = f"{PROJECT / 'app'}/"
PLATFORM_SUBJECT = "platform-benchmark"
WARM_UP = 30  # requests before the one that is counted
CASES = (
    ("owner, billing_city", subject(0), "billing_city", ("London", "Paris")),
    ("platform credential, bp_status", PLATFORM_SUBJECT, "bp_status", ("active", "past_due")),
)


def report(stage: Stage) -> str:
    """Two totals and the files, for a tenant's owner and for a platform credential."""
    add_platform_admin(stage)
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        return "\n\n".join(_case(stage, client, *case) for case in CASES)


def _case(
    stage: Stage, client: FlaskClient, title: str, sub: str, field: str, values: tuple[str, str]
) -> str:
    headers = credential(stage, sub)
    for number in range(WARM_UP):
        patch(client, headers, {field: values[number % 2]})
    entered = _entered(client, headers, {field: values[WARM_UP % 2]})
    files = Counter(Path(frame.f_code.co_filename).relative_to(PROJECT) for frame in entered)
    functions = {frame.f_code for frame in entered}
    lines = [
        f"PATCH subscription, {title}: {len(entered)} calls of {len(functions)} functions"
        f" in {len(files)} files"
    ]
    lines += [f"{count:5}  {file}" for file, count in files.most_common()]
    return "\n".join(lines)


def _entered(client: FlaskClient, headers: dict[str, str], body: Any) -> set[FrameType]:
    """The frames of our own code that one request starts."""
    frames = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            frames.add(frame)

    sys.setprofile(note)
    try:
        patch(client, headers, body)
    finally:
        sys.setprofile(None)
    return frames


def patch(client: FlaskClient, headers: dict[str, str], body: Any) -> None:
    """PATCH the only subscription."""
    path = f"/v1/billing/subscriptions/{row_id(SUBSCRIPTION, 0)}"
    answer = client.patch(path, headers=headers, json=body)
    if answer.status_code != 200:
        raise SystemExit(f"{answer.status}: {answer.text}")


def credential(stage: Stage, sub: str) -> dict[str, str]:
    """The header of a user of the only tenant."""
    return tokens.bearer(stage.environment, subject=sub, org_id=org_id(0))


def add_platform_admin(stage: Stage) -> None:
    with stage.connect() as session, session.cursor() as database:
        database.execute(
            "INSERT INTO platform_admins (subject, created_at) VALUES (%s, now())"
            " ON CONFLICT DO NOTHING",
            (PLATFORM_SUBJECT,),
        )
    session.close()
