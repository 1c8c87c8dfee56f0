"""The settings of docs/operations/running.md that keep personal data out of PostgreSQL's log."""

import json

import pytest

from app import create_app
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE
from app.extensions import db
from tests.running import documented


@pytest.fixture
def defaults(instance):
    """The database has PostgreSQL's own defaults."""
    set_default = f"ALTER DATABASE {DATABASE} SET"
    documented.execute(instance, f"{set_default} log_min_error_statement = 'error'")
    documented.execute(instance, f"{set_default} log_error_verbosity = 'default'")
    yield
    documented.execute(instance, f"ALTER DATABASE {DATABASE} RESET ALL")
    documented.execute(instance, f"ALTER ROLE {APPLICATION_ROLE} RESET ALL")


def finding(environment):
    """What the doctor says of the log, on new connections."""
    app = create_app(environment)
    ended = app.test_cli_runner().invoke(args=["doctor", "--json"])
    with app.app_context():
        db.engine.dispose()
    return next(one for one in json.loads(ended.stdout) if one["check"] == "statement log")


class TestPostgresLog:
    def test_the_documented_settings_satisfy_the_doctor(self, app, instance, environment, defaults):
        before = finding(environment)
        (statements,) = documented.blocks("sql", "running.md", "PostgreSQL's log")
        for statement in statements.strip().splitlines():
            documented.execute(instance, statement)
        after = finding(environment)

        expected = {"log_min_error_statement=error", "log_error_verbosity=default"}
        assert set(before["found"].split()) == expected
        assert after["ok"]

    def test_the_doctor_finds_auto_explain(self, app, instance, environment, defaults):
        (statements,) = documented.blocks("sql", "running.md", "PostgreSQL's log")
        role = f"ALTER ROLE {APPLICATION_ROLE} SET"
        for statement in (
            *statements.strip().splitlines(),
            f"{role} session_preload_libraries = 'auto_explain'",
            f"{role} auto_explain.log_min_duration = '250ms'",
        ):
            documented.execute(instance, statement)

        found = finding(environment)

        assert found["found"] == "auto_explain.log_min_duration=250"
