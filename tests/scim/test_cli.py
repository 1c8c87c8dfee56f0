"""``flask scim``."""

import json

import pytest

from app.extensions import db
from tests.database import execute, query
from tests.factories import create_limits, limit_flag

STEPS = 12
KEY = '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'


def run(app, *words, code=0):
    result = app.test_cli_runner().invoke(args=["scim", *words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 or result.stdout else result.stderr


class TestLog:
    def test_shows_the_last_requests_without_values(self, app, connection, directory):
        directory.add_user("ada@example.com")
        directory.find('userName eq "ada@example.com"')
        directory.post("/Users", {})

        shown = json.loads(run(app, "log", str(connection[0].id), "--json"))

        assert [(one["method"], one["path"], one["status"]) for one in shown] == [
            ("POST", "/Users", 400),
            ("GET", "/Users?filter=userName eq …", 200),
            ("POST", "/Users", 201),
        ]
        assert shown[0]["detail"] == "invalidValue"

    @pytest.mark.parametrize("command", ["log", "test"])
    def test_of_an_unknown_connection_is_an_error(self, app, tenant, command):
        advice = "; give its id (app scim list)"  # the application's name in tests
        for unknown, end in (("x", advice), (str(tenant.id), "")):
            shown = run(app, command, unknown, code=1)
            assert shown == f"Error: There is no SCIM connection {unknown}{end}.\n"


def stored():
    """How many rows each table has, and the connection's counters."""
    tables = [name for name in db.metadata.tables if not name.startswith("alembic")]
    counts = {name: query(f"SELECT count(*) FROM {name}") for name in tables}
    return counts, query("SELECT request_count, version FROM scim_connections")


class TestTest:
    def steps(self, app, connection, **options):
        return json.loads(run(app, "test", str(connection[0].id), "--json", **options))

    def test_tries_each_step_and_leaves_nothing(self, app, connection, directory):
        directory.add_user("ada")
        before = stored()

        steps = self.steps(app, connection)

        assert [step["result"] for step in steps] == ["ok"] * STEPS, steps
        assert stored() == before

    def test_tells_that_no_seat_is_free(self, app, connection):
        create_limits("free", limit_flag("seats", 1))  # the owner has it
        before = stored()

        steps = self.steps(app, connection, code=1)

        results = [step["result"] for step in steps]
        assert results == ["ok"] * 3 + ["failed"] + ["skipped"] * (STEPS - 4)
        assert steps[3]["detail"].startswith("POST answered 403, not 201. ")
        assert "seat" in steps[3]["detail"]
        assert stored() == before

    @pytest.mark.parametrize(
        ("change", "detail"),
        [
            ("UPDATE scim_connections SET status = 'disabled'", "This SCIM connection is disabled"),
            ("UPDATE tenants SET is_active = false", "suspended"),
        ],
        ids=["disabled", "suspended"],
    )
    def test_tells_that_the_connection_is_not_served(self, app, connection, change, detail):
        execute(change)

        steps = self.steps(app, connection, code=1)

        assert [step["result"] for step in steps] == ["failed"] + ["skipped"] * (STEPS - 1)
        assert detail in steps[0]["detail"]
