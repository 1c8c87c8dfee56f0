"""Long polls, by the event feed's ``wait=``."""

from __future__ import annotations

import threading

import pytest

from app.core.db.queries import update_row
from app.core.http import long_poll
from app.events import service
from app.memberships.models import Membership
from tests.database import platform_transaction, query
from tests.factories import create_member, create_tenant, create_user, platform_token
from tests.running.serving import wait_until

PATH = "/v1/events"
PLACES = 2  # a quarter of the tests' DB_POOL_SIZE


@pytest.fixture(autouse=True)
def stopping(monkeypatch):
    """Not set, also after a test of the server has stopped it in this process."""
    monkeypatch.setattr(long_poll, "stopping", threading.Event())
    return long_poll.stopping


@pytest.fixture
def member(app):
    tenant = create_tenant()
    create_member(tenant, role="owner")
    return create_member(tenant, role="owner")


@pytest.fixture
def token(member):
    return member[2]


@pytest.fixture
def looks(monkeypatch):
    """A count of the looks that waiting requests have taken."""
    taken, look = [], service.last_position
    monkeypatch.setattr(service, "last_position", lambda: taken.append(1) or look())
    return taken


class Waiting(threading.Thread):
    """A request that waits, in a thread."""

    def __init__(self, api, token, **query_string):
        super().__init__(daemon=True)
        self._send = lambda: api.get(PATH, token=token, query_string=query_string)
        self.start()

    def run(self):
        self.answer = self._send()

    def answered(self):
        self.join(timeout=30)
        return self.answer


class TestLongPoll:
    def test_is_answered_when_there_is_an_event(self, api, member, token, looks):
        user, _, _ = member
        waiting = Waiting(api, token, wait=20)
        wait_until(lambda: looks)

        api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": "Ada"})
        api.sequence()

        (event,) = waiting.answered().get_json()["data"]
        assert event["data"]["first_name"] == "Ada"

    def test_goes_on_where_the_event_is_another_tenants(self, api, member, token, looks):
        user, other = member[0], create_user(create_tenant())
        waiting = Waiting(api, token, wait=20)
        wait_until(lambda: looks)

        api.patch(f"/v1/users/{other.id}", token=platform_token(), json={"first_name": "x"})
        api.sequence()
        seen = len(looks)
        wait_until(lambda: len(looks) > seen + 1)
        api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": "Ada"})
        api.sequence()

        (event,) = waiting.answered().get_json()["data"]
        assert event["data"]["first_name"] == "Ada"

    def test_is_empty_when_the_time_is_over(self, api, token, looks):
        answer = api.get(PATH, token=token, query_string={"wait": 1})

        assert (answer.status_code, answer.get_json()["data"]) == (200, [])
        assert "Retry-After" not in answer.headers
        assert looks

    def test_does_not_wait_where_events_follow(self, api, member, token, looks):
        api.patch(f"/v1/users/{member[0].id}", token=token, json={"first_name": "Ada"})
        api.sequence()

        answer = api.get(PATH, token=token, query_string={"wait": 20})

        assert len(answer.get_json()["data"]) == 1
        assert not looks

    def test_checks_the_credential_again(self, api, member, token, looks):
        _, membership, _ = member
        waiting = Waiting(api, token, wait=20)
        wait_until(lambda: looks)

        with platform_transaction():
            update_row(Membership, membership, {"is_active": False})
        api.patch(f"/v1/users/{member[0].id}", token=platform_token(), json={"first_name": "x"})
        api.sequence()

        assert waiting.answered().status_code == 403

    def test_holds_no_transaction(self, api, token, looks):
        waiting = Waiting(api, token, wait=1)
        wait_until(lambda: looks)

        wait_until(
            lambda: (
                not query(
                    "SELECT FROM pg_stat_activity WHERE usename = current_user"
                    " AND state LIKE 'idle in%'"
                )
            )
        )

        assert waiting.answered().status_code == 200

    def test_lets_a_quarter_of_the_threads_wait(self, api, member, token, looks):
        waiting = [Waiting(api, token, wait=20) for _ in range(PLACES)]
        wait_until(lambda: len(looks) > 2 * PLACES)

        refused = api.get(PATH, token=token, query_string={"wait": 20})
        api.patch(f"/v1/users/{member[0].id}", token=token, json={"first_name": "Ada"})
        api.sequence()

        assert refused.headers["Retry-After"] == "1"
        assert (refused.status_code, refused.get_json()["data"]) == (200, [])
        assert [len(one.answered().get_json()["data"]) for one in waiting] == [1] * PLACES

    def test_ends_when_the_process_stops(self, api, token, looks, stopping):
        waiting = Waiting(api, token, wait=20)
        wait_until(lambda: looks)

        stopping.set()

        assert waiting.answered().get_json()["data"] == []
        after = api.get(PATH, token=token, query_string={"wait": 20})
        assert after.headers["Retry-After"] == "1"
