"""``flask scim``."""

import json

import pytest

from app.core.actors import SYSTEM_CLI
from app.extensions import db
from tests.database import execute, query
from tests.factories import create_limits, limit_flag
from tests.scim.directory import Directory

STEPS = 12
KEY = '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'


def run(app, *words, code=0):
    result = app.test_cli_runner().invoke(args=["scim", *words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 or result.stdout else result.stderr


class TestConnections:
    def test_are_listed_without_secrets(self, app, tenant, connection):
        shown = run(app, "list", "--tenant", tenant.slug, "--json")

        (listed,) = json.loads(shown)
        assert listed["id"] == str(connection[0].id)
        assert connection[0].digest not in shown


class TestChanges:
    def test_creates_rotates_and_deletes(self, app, tenant):
        words = ["--tenant", tenant.slug, "--name", "Okta", "--provider", "okta"]
        words += ["--group-role", "Finance=billing", "--default-role", "viewer"]

        made = json.loads(run(app, "create", *words, "--json"))
        served = Directory(app, made["token"]).get("/Users").status_code
        rotated = json.loads(run(app, "rotate", made["id"], "--overlap-hours", "0", "--json"))
        after = [Directory(app, one["token"]).get("/Users").status_code for one in (made, rotated)]
        listed = run(app, "list", "--json")
        run(app, "delete", made["id"], "--yes")

        assert (made["provider"], made["default_role"]) == ("okta", "viewer")
        assert (made["group_roles"], made["acts_as"]) == ({"Finance": "billing"}, "owner")
        assert (served, after) == (200, [401, 200])
        assert rotated["token"] not in listed
        assert json.loads(run(app, "list", "--json")) == []
        assert query("SELECT DISTINCT actor FROM audit_events") == [(SYSTEM_CLI.id,)]

    def test_changes_a_connection(self, app, connection):
        known = str(connection[0].id)
        words = ["--name", "Okta", "--group-role", "Finance=billing", "--status", "disabled"]

        changed = json.loads(run(app, "update", known, *words, "--public-key", KEY, "--json"))
        shown = json.loads(run(app, "show", known, "--json"))
        emptied = ["--no-group-roles", "--no-public-keys", "--json"]
        after = json.loads(run(app, "update", known, *emptied))

        assert changed == shown
        assert (shown["name"], shown["status"]) == ("Okta", "disabled")
        assert (shown["group_roles"], shown["default_role"]) == ({"Finance": "billing"}, "member")
        assert shown["public_keys"] == [json.loads(KEY)]
        assert (after["name"], after["group_roles"], after["public_keys"]) == ("Okta", {}, [])

    def test_say_in_a_sentence_what_is_wrong(self, app, tenant, connection):
        known = str(connection[0].id)
        new = ["create", "--tenant", tenant.slug, "--name"]
        for words, said in (
            ([*new, ""], "--name: String should have at least 1"),
            ([*new, "a", "--group-role", "Finance"], "--group-role Finance: write GROUP=ROLE."),
            ([*new, "a", "--group-role", "Finance=king"], "--group-role.Finance: Input should be"),
            (["rotate", known, "--overlap-hours", "721"], "--overlap-hours: Input should be less"),
            ([*new, "a", "--public-key", "{}"], "--public-key.0: not a public key"),
            (["update", "x", "--name", "a"], "There is no SCIM connection x."),
            (["rotate", "x"], "There is no SCIM connection x."),
            (["delete", "x", "--yes"], "There is no SCIM connection x."),
        ):
            ended = app.test_cli_runner().invoke(args=["scim", *words])
            assert ended.exit_code in (1, 2)
            assert said in ended.stderr


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
        for unknown in ("x", str(tenant.id)):
            shown = run(app, command, unknown, code=1)
            assert shown == f"Error: There is no SCIM connection {unknown}.\n"


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
