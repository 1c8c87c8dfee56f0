"""``?as_of=``: each read answers what it answered at that moment, and each export writes it."""

import os

import pytest

from app.audit.models import PastBase
from tests import database
from tests.factories import preset_flag
from tests.history.life import Life
from tests.history.writing import add_bases

LIVES = int(os.environ.get("HISTORY_LIVES", "1"))


@pytest.mark.parametrize("seed", range(LIVES))
def test_equals_what_there_was_at_each_position(app, api, seed):
    life = Life(api, seed)
    api.sequence()
    seen = []
    for number in range(5):
        for _ in range(life.random.randint(1, 20)):
            life.change()
        api.sequence()
        if number % 2:
            add_bases(app, life.random.randint(1, 12))
        position = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]
        seen.append((position, life.read()))

    assert database.rows(PastBase)
    for position, answers in seen:
        missing = {path for path, (status, _) in answers.items() if status != 200}
        assert all("/v1/resources/doc/0" in path for path in missing)
        assert life.read(as_of=position) == answers


class TestOneTenant:
    @pytest.fixture
    def life(self, api):
        """The platform's changes; a tenant with a user, and a position after them."""
        life = Life(api, 1)
        tenant = life.tenants[0]
        body = {"idp_user_id": "ada", "email": "ada@example.com", "first_name": "Ada"}
        user = life.call("POST", "/v1/users", body, tenant_id=tenant["id"])
        api.sequence()
        return life, tenant["id"], user

    def test_reads_its_own_past_with_the_platforms_plans(self, api, life):
        (life, tenant_id, user), names = life, ("first_name", "email", "updated_at")
        key = {"name": "k", "permissions": ["users:read", "flags:read"]}
        key = life.call("POST", "/v1/api-keys", key, tenant_id=tenant_id)
        token = key["secret"]
        before = api.get("/v1/billing/flags", token=token).get_json()
        feed = f"/v1/events?tenant_id={tenant_id}"
        reader = {"name": "r", "permissions": ["events:read"]}
        reader = life.call("POST", "/v1/api-keys", reader, tenant_id=tenant_id)
        api.sequence()
        position = api.get(feed, token=reader["secret"]).get_json()["next_cursor"]
        life.call("PATCH", f"/v1/users/{user['id']}", {"first_name": "Grace"})
        changed = {"flags": [preset_flag("beta", True)]}
        life.call("PATCH", f"/v1/billing/plans/{life.preset['id']}", changed)
        api.sequence()

        past = api.get(f"/v1/users/{user['id']}?as_of={position}", token=token)
        flags = api.get(f"/v1/billing/flags?as_of={position}", token=token)
        elsewhere = api.get(f"/v1/tenants?as_of={position}", token=life.token)

        assert [past.get_json()["data"][name] for name in names] == [user[name] for name in names]
        assert flags.get_json() == before
        again = api.get(f"/v1/users/{user['id']}?as_of={past.headers['X-As-Of']}", token=token)
        assert again.get_json()["data"]["first_name"] == "Ada"
        assert elsewhere.status_code == 422

    def test_the_last_value_of_a_repeated_parameter_counts(self, api, life):
        life, tenant_id, user = life
        other = life.tenants[1]["id"]
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        sent = f"as_of=0&as_of={now}&tenant_id={other}&tenant_id={tenant_id}"
        answer = api.get(f"/v1/users?{sent}", token=life.token)

        assert user["id"] in [each["id"] for each in answer.get_json()["data"]]

    @pytest.mark.parametrize(
        ("method", "path", "as_of", "word"),
        [
            ("GET", "/v1/users", "2999-01-01T00:00:00Z", "future"),
            ("GET", "/v1/users", "2026-01-01T00:00:00", "offset"),
            ("GET", "/v1/users", "yesterday", "position"),
            ("GET", "/v1/users", "%00", "position"),
            ("GET", "/v1/users", "", "position"),
            ("GET", "/v1/users", "99999999999999999999", "position"),
            ("GET", "/v1/users?include=tenant", "2026-01-01T00:00:00Z", "include"),
            ("GET", "/v1/users?meta_data.x=1", "2026-01-01T00:00:00Z", "meta_data.x"),
            ("GET", "/v1/api-keys", "2026-01-01T00:00:00Z", "does not read the past"),
            ("POST", "/v1/users", "2026-01-01T00:00:00Z", "does not read the past"),
        ],
    )
    def test_refuses(self, api, owner, method, path, as_of, word):
        sent = f"{path}{'&' if '?' in path else '?'}as_of={as_of}"

        answer = api.request(method, sent, token=owner)

        assert answer.status_code == 422, answer.text
        (entry,) = answer.get_json()["detail"]
        assert entry["loc"] == ["query", "as_of"]
        assert word in entry["msg"]

    def test_refuses_a_position_that_no_event_has_yet(self, api, life):
        answer = api.get("/v1/users?as_of=999999999", token=life[0].token)

        assert answer.status_code == 422
        assert "no event has this position yet" in answer.text

    def test_there_is_nothing_before_the_tenant(self, api, life):
        life, tenant_id, user = life
        early = "2020-01-01T00:00:00Z"

        for path in (
            f"/v1/tenants/{tenant_id}?as_of={early}",
            f"/v1/users/{user['id']}?as_of={early}",
            f"/v1/users?tenant_id={tenant_id}&as_of={early}",
        ):
            assert api.get(path, token=life.token).status_code == 404
        assert api.get(f"/v1/users?as_of={early}", token=life.token).get_json()["data"] == []

    def test_what_is_said_about_a_row_does_not_change_it(self, api, life):
        life, tenant_id, user = life
        life.call("PUT", f"/v1/tenants/{tenant_id}/notes", {"text": "calls on Mondays"})
        owner = {"user_id": user["id"], "role": "owner"}
        life.call("POST", "/v1/memberships/tenant", owner, tenant_id=tenant_id)
        life.call("POST", f"/v1/users/{user['id']}/export")
        api.sequence()
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        assert life.read(as_of=now) == life.read()

    def test_a_row_without_its_creation_is_absent(self, api, life):
        life, _, user = life
        life.call("PATCH", f"/v1/users/{user['id']}", {"first_name": "Grace"})
        api.sequence()
        database.execute("DELETE FROM audit_positions WHERE target_type = 'user' AND version = 1")
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        past = api.get(f"/v1/users?as_of={now}", token=life.token)

        assert past.get_json()["data"] == []

    def test_what_was_erased_is_gone_from_the_past(self, app, api, life):
        life, tenant_id, user = life
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]
        result = app.test_cli_runner().invoke(args=["users", "erase", user["id"], "--yes"])
        assert result.exit_code == 0, result.output
        api.sequence()

        past = api.get(f"/v1/users?tenant_id={tenant_id}&as_of={now}", token=life.token)

        assert past.status_code == 200
        assert '"ada' not in past.text.lower()


def test_a_view_has_the_columns_of_its_table(app):
    columns = database.query(
        "SELECT table_name, column_name, table_schema FROM information_schema.columns"
        " WHERE table_schema IN ('past', 'public') AND table_name IN"
        " (SELECT table_name FROM information_schema.views WHERE table_schema = 'past')"
    )
    found = {"past": set(), "public": set()}
    for table, column, schema in columns:
        found[schema].add((table, column))
    only_there = ("trail", "role_trail", "changes", "rows", "starts", "oldest")
    found["past"] -= {each for each in found["past"] if each[0] in only_there}

    assert found["past"] == found["public"] != set()
