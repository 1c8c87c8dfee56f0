"""What the tests of log streams share."""

import json
from typing import Any

from flask import Flask

from app.core.actors import SYSTEM_CLI
from app.events import positions
from app.log_streams import runner
from app.log_streams.models import LogStreamProgress
from app.users import service as users
from tests.database import execute, platform_transaction, row


def change(app: Flask, user: Any, *names: str) -> None:
    """Change the user once for each name; the events have positions afterwards."""
    for name in names:
        with platform_transaction():
            users.update(user.id, {"first_name": name}, actor=SYSTEM_CLI)
    sequence(app)


def sequence(app: Flask) -> None:
    with app.app_context():
        while positions.sequence():
            pass


def write_due(app: Flask) -> None:
    """Write what is due, batch after batch, in this thread."""
    while found := runner.claim(app):
        for one in found:
            runner.write(app, one)


def write_due_once(app: Flask) -> None:
    """Write one batch of each stream that is due."""
    for one in runner.claim(app):
        runner.write(app, one)


def make_due(stream: Any) -> None:
    """Let the time until the next attempt pass."""
    execute(
        "UPDATE log_stream_progress SET next_attempt_at = now()"
        f" WHERE stream_id = '{stream.id}' AND next_attempt_at IS NOT NULL"
    )


def progress(stream: Any) -> LogStreamProgress:
    return row(LogStreamProgress, stream_id=stream.id)


def names(body: bytes) -> list[str]:
    """The first names in the records of NDJSON."""
    return [json.loads(line)["data"]["first_name"] for line in body.splitlines()]
