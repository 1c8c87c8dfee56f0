"""Reading from replicas, with a real primary and two standbys."""

import json
import os
import time

import anyio
import pytest
from mcp import Client

from app.agents.server import Agents
from app.agents.tools import tools
from app.auth import sessions
from app.auth.permissions import Permission
from app.core.db.replicas import reading, watch
from app.core.db.replicas.watch import State
from tests import factories
from tests.changes import make_world
from tests.conftest import Api
from tests.console.conftest import Browser
from tests.database import execute, platform_transaction
from tests.document import MAY_BE_MISSING, find_row, operations, view_of
from tests.factories import (
    PLATFORM_SUBJECT,
    create_api_key,
    create_limits,
    create_member,
    create_tenant,
    create_user,
    limit_flag,
    platform_token,
)
from tests.operations.test_metrics import samples
from tests.replicas import messages, replicated

END_CONNECTIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'controlplane'
"""


@pytest.fixture(scope="module")
def world(app, environment):
    """Replicas may be far behind, and slow to answer, so that the tests need no quick machine."""
    with (
        replicated(environment, REPLICA_MAX_LAG="60") as found,
        pytest.MonkeyPatch.context() as patch,
    ):
        for module in (watch, reading):
            patch.setattr(module, "ANSWER", 2.0)
        yield found


@pytest.fixture
def strict(calm, monkeypatch):
    """Replicas may be a second behind."""
    monkeypatch.setattr(calm.replicas, "max_lag", 1.0)


@pytest.fixture
def calm(world):
    """Both standbys have all changes and are read from, at the start and again at the end."""
    world.cluster.wait_for_replay()
    world.wait_for(State.OK)
    yield world
    for node in world.cluster.standbys:
        node.start()
        node.unfreeze()
        node.resume_replay()


@pytest.fixture
def behind(calm):
    """Call it to stop both standbys where they are; they still answer."""

    def pause():
        calm.cluster.wait_for_replay()
        for node in calm.cluster.standbys:
            node.pause_replay()

    return pause


@pytest.fixture
def api(world):
    return Api(world.app)


@pytest.fixture
def member(calm):
    """A tenant, a user of it, and its admin's token; the standbys have them."""
    tenant = create_tenant()
    _, _, token = create_member(tenant)
    user = create_user(tenant, first_name="Before")
    calm.cluster.wait_for_replay()
    return tenant, user, token


def first_name(api, member, **headers):
    _, user, token = member
    answer = api.get(f"/v1/users/{user.id}", token=token, headers=headers)
    assert answer.status_code == 200
    return answer.get_json()["data"]["first_name"]


def sign_in(app):
    platform_token()  # creates the superadmin
    with platform_transaction():
        return Browser(app, sessions.start(PLATFORM_SUBJECT, None))


def rename(api, member, name, **headers):
    _, user, token = member
    answer = api.patch(
        f"/v1/users/{user.id}", token=token, json={"first_name": name}, headers=headers
    )
    assert answer.status_code == 200
    return answer


class TestRead:
    def test_sends_one_message_to_the_primary(self, calm, api, member):
        with messages() as sent:
            first_name(api, member)

        assert [(server[:7], name) for server, name in sent] == [
            ("primary", "auth.authenticate_user"),
            ("replica", "replicas.enter"),
            ("replica", "users.get"),
            ("replica", "COMMIT"),
        ]

    def test_uses_each_replica(self, calm, api, member):
        with messages() as sent:
            for _ in range(50):
                first_name(api, member)

        assert {server for server, _ in sent} == {"primary", "replica_1", "replica_2"}

    def test_of_every_kind_is_answered_by_a_replica(self, calm, api):
        data, wrong, count = make_world(calm.app), [], 0
        execute("UPDATE tenants SET created_at = '2026-01-01Z'")  # before the moments of examples
        api.sequence()
        document = calm.app.test_client().get("/openapi.json").get_json()
        for one in operations(document):
            if one.is_change or one.permission is None or one.is_stream:
                continue
            path, query = one.path, dict(one.query)
            if one.names_a_row:
                path = one.path_of(find_row(api, one, data["tenant_id"], data["token"]))
            if one.takes_a_tenant:
                query["tenant_id"] = data["tenant_id"]
            calm.cluster.wait_for_replay()
            with messages() as sent:
                answer = api.get(path, token=data["token"], query_string=query)
            assert answer.status_code == 200 or one.name in MAY_BE_MISSING, (one.name, answer.text)
            servers = [server for server, _ in sent]
            is_about_primary = view_of(calm.app, one).reads_primary
            from_replica = servers.count("primary") == 1 and set(servers) != {"primary"}
            if answer.status_code == 200 and from_replica is is_about_primary:
                wrong.append((one.name, sent))
            count += 1

        assert wrong == []
        assert count > 30

    def test_by_ofrep_is_answered_by_a_replica(self, calm, api, member):
        for path in ("/ofrep/v1/evaluate/flags", "/ofrep/v1/evaluate/flags/theme"):
            with messages() as sent:
                answer = api.post(path, token=member[2], json={"context": {}})
            assert answer.status_code == 200
            assert [server for server, _ in sent].count("primary") == 1
            assert "X-Consistency" not in answer.headers

    def test_with_a_stored_answer_is_answered_by_the_primary(self, calm, api, member):
        headers = {"Idempotency-Key": "once"}
        with messages() as sent:
            api.post("/ofrep/v1/evaluate/flags", token=member[2], json={}, headers=headers)

        assert {server for server, _ in sent} == {"primary"}

    def test_shows_no_other_tenants_rows(self, calm, api, member):
        other = member[1]
        stranger = create_member(create_tenant())[2]
        calm.cluster.wait_for_replay()

        with messages() as sent:
            listed = api.get("/v1/users", token=stranger).get_json()["data"]
        answer = api.get(f"/v1/users/{other.id}", token=stranger)

        assert len(listed) == 1
        assert str(other.id) not in {row["id"] for row in listed}
        assert answer.status_code == 404
        assert "replica" in {server[:7] for server, _ in sent}

    def test_sees_a_revoked_key_on_the_next_request(self, calm, api, member, behind):
        tenant, _, token = member
        secret = create_api_key(tenant, [Permission.USERS_READ])
        calm.cluster.wait_for_replay()
        (key,) = api.get("/v1/api-keys", token=token).get_json()["data"]
        assert api.get("/v1/users", token=secret).status_code == 200
        behind()

        revoked = api.delete(f"/v1/api-keys/{key['id']}", token=token)

        assert revoked.status_code == 204
        assert api.get("/v1/users", token=secret).status_code == 401

    def test_leaves_use_of_keys_recorded(self, calm, api, member):
        tenant, _, token = member
        secret = create_api_key(tenant, [Permission.USERS_READ])
        calm.cluster.wait_for_replay()

        api.get("/v1/users", token=secret)

        calm.cluster.wait_for_replay()
        (key,) = api.get("/v1/api-keys", token=token).get_json()["data"]
        assert key["last_used_at"] is not None

    def test_repeats_an_error_on_the_primary(self, api, member, behind):
        tenant, _, token = member
        behind()

        user = create_user(tenant)

        assert api.get(f"/v1/users/{user.id}", token=token).status_code == 200

    def test_that_loses_its_connection_is_repeated_on_the_primary(self, calm, api, member):
        answers = []
        for _ in range(5):
            for node in calm.cluster.standbys:
                node.execute(END_CONNECTIONS)
            answers.append(first_name(api, member))

        assert answers == ["Before"] * 5


class TestChange:
    def test_runs_on_the_primary_and_answers_a_token(self, calm, api, member):
        with messages() as sent:
            answer = rename(api, member, "After")

        assert {server for server, _ in sent} == {"primary"}
        assert len(sent) <= 6  # none for the token
        assert answer.headers["X-Consistency"].count("/") == 1

    def test_that_fails_answers_no_token(self, calm, api, member):
        answer = api.patch(f"/v1/users/{member[1].id}", token=member[2], json={"first_name": 5})

        assert answer.status_code == 422
        assert "X-Consistency" not in answer.headers

    def test_that_is_repeated_answers_a_new_token(self, calm, api, member):
        first = rename(api, member, "After", **{"Idempotency-Key": "once"})
        create_tenant()
        again = rename(api, member, "After", **{"Idempotency-Key": "once"})

        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["X-Consistency"] != first.headers["X-Consistency"]

    def test_of_usage_is_decided_by_the_primary(self, calm, api, member):
        create_limits("metered", limit_flag("api-calls"))
        tenant = create_tenant(plan_name="metered")
        token = create_api_key(tenant, [Permission.USAGE_READ, Permission.USAGE_WRITE])

        for path in ("/v1/usage/check", "/v1/usage/consume"):
            with messages() as sent:
                answer = api.post(path, token=token, json={"feature": "api-calls", "amount": 1})
            assert answer.status_code == 200, answer.text
            assert {server for server, _ in sent} == {"primary"}


class TestToken:
    def test_shows_what_was_written(self, api, member, behind):
        behind()
        token = rename(api, member, "After").headers["X-Consistency"]

        assert first_name(api, member) == "Before"  # from a replica, without the token
        assert first_name(api, member, **{"X-Consistency": token}) == "After"

    def test_of_an_old_change_is_read_from_a_replica(self, calm, api, member):
        token = rename(api, member, "After").headers["X-Consistency"]
        calm.cluster.wait_for_replay()

        with messages() as sent:
            found = first_name(api, member, **{"X-Consistency": token})

        assert found == "After"
        assert [server for server, _ in sent].count("primary") == 1

    @pytest.mark.parametrize("token", ["", "1", "0/", "g/0", "0/0 ", "0/123456789", "0/0/0", "ä"])
    def test_that_is_malformed_is_refused(self, calm, api, member, token):
        headers = {"X-Consistency": token}

        answer = api.get("/v1/users", token=member[2], headers=headers)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["header", "x-consistency"]
        assert api.get("/v1/users", token="unknown", headers=headers).status_code == 401

    def test_of_the_future_is_answered_by_the_primary(self, calm, api, member):
        assert first_name(api, member, **{"X-Consistency": "FFFFFFFF/FFFFFFFF"}) == "Before"

    def test_is_ignored_without_replicas(self, app, api, environment):
        with factories.bound(app):
            token = create_member(create_tenant())[2]
            headers = {"X-Consistency": "no token"}
            answer = Api(app).get("/v1/users", token=token, headers=headers)
            created = Api(app).post(
                "/v1/api-keys", token=token, json={"name": "n", "permissions": []}
            )

        assert answer.status_code == 200
        assert "X-Consistency" not in created.headers


class TestReplica:
    def test_that_lags_is_left_alone_until_it_has_caught_up(
        self, calm, strict, api, member, behind
    ):
        behind()
        rename(api, member, "After")
        calm.wait_for(State.LAGGING)

        with messages() as sent:
            found = first_name(api, member)
        lags = [one.lag for one in calm.replicas.all]
        for node in calm.cluster.standbys:
            node.resume_replay()
        calm.wait_for(State.OK)

        assert found == "After"
        assert {server for server, _ in sent} == {"primary"}
        assert min(lags) >= calm.replicas.max_lag
        with messages() as sent:
            assert first_name(api, member) == "After"
        assert "replica" in {server[:7] for server, _ in sent}

    def test_is_read_while_the_primary_writes_nothing(self, calm, strict, api, member):
        calm.cluster.primary.execute("CHECKPOINT")
        calm.cluster.wait_for_replay()
        time.sleep(2 * calm.replicas.max_lag)

        assert {one.state for one in calm.replicas.all} == {State.OK}
        assert {one.lag for one in calm.replicas.all} == {0.0}

    def test_states_are_shown(self, calm, api, member):
        gone, other = calm.cluster.standbys
        first_name(api, member)
        ready = api.get("/readyz").get_json()
        gone.kill()
        calm.wait_for(State.UNAVAILABLE, gone)

        degraded = api.get("/readyz")
        shown = samples(api.get("/metrics").text)
        ended = calm.app.test_cli_runner().invoke(args=["doctor", "--json"])

        findings = {one["check"]: one for one in json.loads(ended.stdout)}
        assert findings[f"replica {calm.replica(gone).name}"]["found"] == "unavailable"
        assert findings[f"replica {calm.replica(other).name}"]["ok"]
        assert findings[f"role at {calm.replica(other).name}"]["ok"]
        assert ready["checks"]["replicas"] == "ok"
        assert degraded.status_code == 200
        assert degraded.get_json()["checks"]["replicas"] == "degraded"
        name = calm.replica(gone).name
        assert shown["replica_state", ("replica", name), ("state", "unavailable")] == 1
        assert shown["replica_state", ("replica", name), ("state", "ok")] == 0
        assert shown["replica_lag_seconds", ("replica", calm.replica(other).name)] < 60
        assert any(key[0] == "database_reads_total" for key in shown)

    def test_is_watched_by_a_forked_process_too(self, calm):
        """It has threads of its own, and no state of its parent."""
        child = os.fork()
        if child == 0:
            found = calm.replicas
            os._exit(0 if not found._threads and found.all[0].state is State.UNAVAILABLE else 1)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestConsole:
    def test_shows_what_was_changed_there(self, member, calm, behind):
        tenant = member[0]
        browser = sign_in(calm.app)
        calm.cluster.wait_for_replay()
        path = f"/console/tenants/{tenant.id}/edit"
        form = {"name": "Renamed", "slug": tenant.slug}
        behind()

        sent = browser.send(path, **form)
        page = browser.get(sent.headers["Location"])
        stale = sign_in(calm.app).get(sent.headers["Location"])

        assert sent.status_code == 303
        assert "Renamed" in page.text
        assert "Renamed" not in stale.text  # another browser reads from a replica


class TestAgents:
    def test_read_what_they_have_changed(self, calm, member, behind):
        _, user, token = member
        names = {(one.method, one.path): name for name, one in tools(calm.app).items()}
        agents = Agents(calm.app, can_write=True, token=token)
        path, place = "/v1/users/{user_id}", {"user_id": str(user.id)}
        behind()

        async def talk():
            async with Client(agents.server()) as client:
                body = {"first_name": "After"}
                await client.call_tool(names["patch", path], {**place, "body": body})
                return await client.call_tool(names["get", path], place)

        found = anyio.run(talk).structured_content
        assert found["body"]["data"]["first_name"] == "After"


class TestFeed:
    def test_of_a_position_that_no_replica_has_is_answered(self, api, member, behind):
        token = member[2]
        behind()
        rename(api, member, "After")
        api.sequence()

        first = api.get("/v1/events", token=token, headers={"X-Consistency": "FFFFFFFF/0"})
        query = {"after": first.get_json()["next_cursor"]}
        answer = api.get("/v1/events", token=token, query_string=query)

        assert first.get_json()["data"]
        assert answer.status_code == 200
