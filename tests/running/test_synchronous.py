"""Synchronous replication as docs/operations/growing.md sets it up, while all standbys are away: no
change is acknowledged."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from app import create_app
from app.dev.engines.instance import APPLICATION_ROLE, Instance
from app.extensions import db
from tests.conftest import Api
from tests.database import query
from tests.factories import create_member, create_preset, create_tenant, create_user
from tests.inbox.sending import Sender
from tests.running import documented
from tests.running.serving import wait_until

WAITING = (
    "SELECT pid FROM pg_stat_activity"
    f" WHERE usename = '{APPLICATION_ROLE}' AND wait_event = 'SyncRep'"
)


class Standby:
    """Standbys that never come, until :meth:`forget`."""

    def __init__(self, instance: Instance) -> None:
        self._session = documented.superuser(instance)

    def execute(self, *statements: str) -> list[tuple]:
        with self._session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def require(self) -> None:
        """Let each commit of the application wait for one of them."""
        (setting,) = documented.blocks("sql", "growing.md", "Failover")
        self.execute(
            *setting.strip().removesuffix(";").split(";"),
            f"ALTER ROLE {APPLICATION_ROLE} SET synchronous_commit = 'on'",
        )
        wait_until(lambda: self.execute("SHOW synchronous_standby_names") != [("",)])

    def forget(self) -> None:
        self.execute(
            "ALTER SYSTEM RESET synchronous_standby_names",
            f"ALTER ROLE {APPLICATION_ROLE} RESET synchronous_commit",
            "SELECT pg_reload_conf()",
        )
        wait_until(lambda: not self.execute(WAITING))

    def wait_for_commits(self, number: int = 1) -> None:
        """Return once so many commits wait for it."""
        wait_until(lambda: len(self.execute(WAITING)) == number)

    def cancel(self) -> None:
        """End the wait of the commit that waits, as an operator can."""
        self.wait_for_commits()
        self.execute(f"SELECT pg_cancel_backend(pid) FROM ({WAITING}) AS waiting")
        self.wait_for_commits(0)


@pytest.fixture
def standby(app, instance: Instance) -> Iterator[Standby]:
    """One that is away, for the connections of the application's pool and further ones."""
    found = Standby(instance)
    found.require()
    with app.app_context():
        db.engine.dispose()
    yield found
    found.forget()
    with app.app_context():
        db.engine.dispose()


@pytest.fixture
def tenant(app):
    create_preset()
    return create_tenant()


@pytest.fixture
def later() -> Iterator[Callable[..., Future]]:
    """Call a function in a thread."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


class TestCommit:
    """``tenant`` and the rows of a test are there before the standby is missed."""

    @pytest.fixture
    def user(self, tenant):
        return create_user(tenant)

    @pytest.fixture
    def token(self, tenant):
        return create_member(tenant)[2]

    def test_whose_wait_is_cancelled_is_answered_503(
        self, api: Api, user, token, standby: Standby, later
    ):
        path, body = f"/v1/users/{user.id}", {"first_name": "Ada"}

        answer = later(api.patch, path, json=body, token=token)
        standby.cancel()

        assert answer.result().status_code == 503
        assert answer.result().headers["Retry-After"]
        assert query("SELECT count(*) FROM users WHERE first_name = 'Ada'") == [(1,)]

    def test_of_a_stored_answer_waits_too(self, api: Api, user, token, standby: Standby, later):
        path, headers = f"/v1/users/{user.id}", {"Idempotency-Key": "one"}

        def change() -> Future:
            return later(api.patch, path, json={"first_name": "Ada"}, token=token, headers=headers)

        answers = []
        for _ in range(2):
            answers.append(change())
            standby.cancel()
        answers.append(change())
        standby.wait_for_commits()
        standby.forget()

        assert [answer.result().status_code for answer in answers] == [503, 503, 200]
        assert answers[2].result().headers["Idempotent-Replayed"] == "true"

    def test_of_a_change_that_is_made_already_waits_too(
        self, api: Api, tenant, token, standby: Standby, later
    ):
        membership = query("SELECT id FROM memberships")[0].id

        answer = later(
            api.patch, f"/v1/memberships/tenant/{membership}/active?is_active=true", token=token
        )
        standby.cancel()

        assert answer.result().status_code == 503

    def test_of_a_receipt_and_of_its_duplicate(self, app, monkeypatch, standby: Standby, later):
        sender = Sender(app, monkeypatch)
        event = {"type": "organization.created", "data": {"id": "org_1", "name": "Acme"}}

        def post() -> Future:
            return later(sender.post, "standard_webhooks", event, message_id="msg_1")

        answers = []
        for _ in range(2):
            answers.append(post())
            standby.cancel()
        answers.append(post())
        standby.wait_for_commits()
        standby.forget()

        assert [answer.result().status_code for answer in answers] == [503, 503, 200]
        assert answers[2].result().get_json()["duplicate"]

    def test_of_a_read_does_not_wait(self, api: Api, user, token, standby: Standby):
        flags = api.post("/ofrep/v1/evaluate/flags", json={}, token=token)

        assert api.get(f"/v1/users/{user.id}", token=token).status_code == 200
        assert flags.status_code == 200

    def test_waits_no_longer_than_a_statement_may_take_and_holds_up_no_read(
        self, environment, user, token, standby: Standby
    ):
        quick = create_app({**environment, "DB_STATEMENT_TIMEOUT": "1"})
        path = f"/v1/users/{user.id}"

        answer = Api(quick).patch(path, json={"first_name": "Ada"}, token=token)
        read = Api(quick).get(path, token=token)
        standby.wait_for_commits()  # PostgreSQL still does
        standby.forget()
        read_again = Api(quick).get(path, token=token)
        with quick.app_context():
            db.engine.dispose()

        assert answer.status_code == 503
        assert read.get_json()["data"]["first_name"] != "Ada"
        assert read_again.get_json()["data"]["first_name"] == "Ada"
