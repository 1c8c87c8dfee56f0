"""``flask audit``."""

import json
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.cli.audit import follow
from app.cli.calls import in_process
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.plans import assignments
from tests.audit.test_history import add_row
from tests.database import platform_transaction
from tests.factories import create_preset, create_tenant, save

TAIL = """
import signal
from flask.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
main()
"""


@pytest.fixture
def run(app):
    def invoke(*words, ok=True):
        ended = app.test_cli_runner().invoke(args=["audit", *map(str, words)])
        assert (ended.exit_code == 0) == ok, ended.output
        return json.loads(ended.stdout) if ok and "--json" in words else ended

    return invoke


class TestList:
    def test_shows_what_an_assigned_plan_is(self, app, run):
        create_preset("pro")
        tenant = create_tenant()
        with platform_transaction():
            assignments.assign(
                tenant.id, plan_name="pro", until=None, reason="Pilot", actor=SYSTEM_CLI
            )

        table = run("list", "--tenant", tenant.slug).stdout

        assert 'plan_name: "pro"; until: null; reason: "Pilot"' in table


class TestTail:
    @pytest.fixture
    def read(self, app):
        def start(filters=None, lines=10):
            return follow(in_process(), filters or {}, lines, interval=0.01)

        with app.app_context():
            yield start

    def test_shows_the_last_changes_then_each_new_one_once(self, read):
        for target in "abc":
            add_row(None, target)
        events = read(lines=2)
        first = [next(events)["target_id"] for _ in range(2)]

        for target in "def":
            add_row(None, target)

        assert first == ["b", "c"]
        assert [next(events)["target_id"] for _ in range(3)] == ["d", "e", "f"]

    def test_shows_what_is_committed_late(self, read):
        add_row(None, "a")
        events = read()
        next(events)
        add_row(None, "b")
        assert next(events)["target_id"] == "b"

        add_late(seconds=5, target_id="late")

        assert next(events)["target_id"] == "late"

    def test_shows_more_than_one_page(self, read):
        add_row(None, "first")
        events = read(lines=1)
        next(events)
        for number in range(250):
            add_row(None, number)

        targets = [next(events)["target_id"] for _ in range(250)]

        assert targets == [str(number) for number in range(250)]

    def test_prints_a_line_for_each_and_ends_cleanly(self, app, environment):
        add_row(None, "first\x1b[2J")
        command = [sys.executable, "-c", TAIL, "--app", "wsgi", "audit", "tail"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            shown = process.stdout.readline()
            add_row(None, "second")
            later = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=20)

        assert "user.updated  first [2J  by system:idp  (a)" in shown
        assert "second" in later
        assert (process.returncode, told.strip()) == (0, "")


def add_late(*, seconds: int, target_id: str) -> None:
    """A change that was made some seconds before its commit."""
    save(
        AuditEvent,
        tenant_id="00000000-0000-0000-0000-000000000000",
        created_at=utcnow() - timedelta(seconds=seconds),
        actor="system:idp",
        action="user.updated",
        target_type="user",
        target_id=target_id,
        before={},
        after={},
    )
