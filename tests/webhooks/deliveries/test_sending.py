"""Deliveries as receivers see them, verified by the public libraries."""

import base64
import json
import threading
import time
from collections import Counter
from datetime import timedelta

import pytest
import standardwebhooks
import svix.webhooks
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.core.clock import utcnow
from app.core.outgoing import Outgoing
from app.webhooks.deliveries import attempt, work
from app.webhooks.deliveries.jobs import remove_old_deliveries
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.endpoints.models import WebhookEndpoint, WebhookEndpointState
from tests import database
from tests.factories import create_tenant, create_user, platform_token
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until
from tests.webhooks.endpoints.support import create_endpoint, token_of

PATH = "/v1/webhook-endpoints"
WAITING = [("pending", 500)]


@pytest.fixture
def hook():
    with receiver() as found:
        yield found


@pytest.fixture
def endpoint(api, hook):
    """An endpoint for the events of users."""
    return create_endpoint(api, url=hook.url, types=["user.*"])


@pytest.fixture
def quick(monkeypatch):
    """All waits are a few milliseconds."""
    monkeypatch.setattr(attempt, "WAITS", (0, *[0.01] * 9))


def change(api, tenant, *, name: str = "New") -> str:
    """Change a new user of the tenant; its id. Two events follow, one of each change."""
    user = create_user(tenant)
    answer = api.patch(f"/v1/users/{user.id}", token=platform_token(), json={"first_name": name})
    assert answer.status_code == 200
    api.sequence()
    return str(user.id)


def deliver(app, until) -> None:
    """Run a sender until the condition holds."""
    with sender(app):
        wait_until(until)


def deliver_change(app, api, expected="succeeded") -> None:
    """Change a user, and run a sender until the only delivery has this status."""
    change(api, create_tenant())
    deliver(app, lambda: statuses() == [expected])


def add_deliveries() -> int:
    work.prepare()
    return work.add_deliveries()


def rotate(api, endpoint, name="secret") -> str:
    answer = api.post(f"{PATH}/{endpoint['id']}/rotate", token=platform_token())
    return answer.get_json()["data"][name]


def is_verified(received, secret, library=standardwebhooks.Webhook, *, body=None) -> bool:
    try:
        library(secret).verify(body or received.body, received.headers)
    except standardwebhooks.WebhookVerificationError:
        return False
    return True


def state():
    return database.row(WebhookEndpointState)


def claim() -> list:
    claimed, _ = work.exchange([], 10)
    return claimed


def deliveries() -> list:
    return database.rows(WebhookDelivery)


def statuses() -> list[str]:
    return sorted(row.status for row in deliveries())


def endpoint_row():
    (row,) = database.rows(WebhookEndpoint)
    return row


class TestDelivery:
    def test_is_the_event_of_the_feed(self, app, api, hook):
        create_endpoint(api, url=hook.url, types=["user.*"], headers={"X-Own": "mine"})

        deliver_change(app, api)

        (received,) = hook.received
        (event,) = api.get(
            "/v1/events", token=platform_token(), query_string={"types": "user.*"}
        ).get_json()["data"]
        assert json.loads(received.body) == event
        assert received.id == event["id"]
        assert received.headers["content-type"] == "application/json"
        assert received.headers["x-own"] == "mine"
        assert "authorization" not in received.headers

    def test_shows_a_tenant_its_own_form(self, app, api, hook, tenant):
        token = token_of(tenant)
        create_endpoint(api, token, url=hook.url, types=["user.updated"])
        change(api, tenant)

        deliver(app, lambda: statuses() == ["succeeded"])

        (event,) = api.get(
            "/v1/events", token=token, query_string={"types": "user.updated"}
        ).get_json()["data"]
        body = json.loads(hook.received[0].body)
        assert {**body, "position": ""} == {**event, "position": ""}
        assert body["actor"] == "platform"
        assert isinstance(body["position"], str)

    def test_reaches_only_the_endpoints_whose_event_it_is(self, app, api, hook):
        mine, other = create_tenant(), create_tenant()
        wanted = [
            create_endpoint(api, url=hook.url, types=["*"]),
            create_endpoint(api, url=hook.url, types=["user.updated"], tenant_id=str(mine.id)),
        ]
        create_endpoint(api, url=hook.url, types=["tenant.*"])
        create_endpoint(api, url=hook.url, types=["*"], is_active=False)
        create_endpoint(api, url=hook.url, types=["*"], tenant_id=str(other.id))

        change(api, mine)
        deliver(app, lambda: statuses() == ["succeeded"] * 2)

        assert {str(row.endpoint_id) for row in deliveries()} == {one["id"] for one in wanted}

    def test_is_made_once_however_many_senders_run(self, app, api, hook, endpoint, tenant):
        for number in range(20):
            change(api, tenant, name=f"Name {number}")

        with sender(app), sender(app), sender(app):
            wait_until(lambda: statuses() == ["succeeded"] * 20)

        assert len(hook.ids) == len(set(hook.ids)) == 20

    def test_of_a_deleted_endpoint_is_made_no_more(self, app, api, hook, endpoint):
        change(api, create_tenant())
        with app.app_context():
            add_deliveries()
            api.delete(f"{PATH}/{endpoint['id']}", token=platform_token())

            assert claim() == []
            remove_old_deliveries()

        assert deliveries() == []

    def test_waits_while_the_tenant_is_suspended(self, app, api, hook, tenant):
        create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))
        change(api, tenant)
        path = f"/v1/tenants/{tenant.id}/active"
        api.patch(path, token=platform_token(), query_string={"is_active": "false"})

        with app.app_context():
            assert add_deliveries() > 0
            assert claim() == []
        api.patch(path, token=platform_token(), query_string={"is_active": "true"})
        deliver(app, lambda: statuses() == ["succeeded"])

    def test_never_goes_to_a_private_address(self, app, api, hook, endpoint, quick, monkeypatch):
        monkeypatch.setitem(app.extensions, "guarded_outgoing", Outgoing(only_public=True))

        deliver_change(app, api, "failed")

        assert hook.received == []
        assert "https" in deliveries()[0].error


class TestSignature:
    @pytest.mark.parametrize("rotations", [0, 1, 5])
    def test_is_verified_by_the_libraries_with_the_last_five_secrets(
        self, app, api, hook, endpoint, rotations
    ):
        secrets = [endpoint["secret"], *(rotate(api, endpoint) for _ in range(rotations))]

        deliver_change(app, api)

        (received,) = hook.received
        for library in (standardwebhooks.Webhook, svix.webhooks.Webhook):
            found = [is_verified(received, secret, library) for secret in secrets]
            assert found == [rotations < 5, *[True] * rotations]
            assert not is_verified(received, secrets[-1], library, body=received.body + b" ")
            assert not is_verified(received, "whsec_" + "A" * 32, library)

    def test_is_verified_with_an_old_secret_that_a_release_before_has_stored(
        self, app, api, hook, endpoint
    ):
        change_secret = "UPDATE webhook_endpoint_states SET old_secret = :secret"
        before = state().secret
        rotate(api, endpoint)
        database.execute(change_secret, secret=before)

        deliver_change(app, api)

        assert is_verified(hook.received[0], endpoint["secret"])

    def test_is_not_verified_with_the_old_secret_after_24_hours(self, app, api, hook, endpoint):
        secrets = [endpoint["secret"], rotate(api, endpoint)]
        database.execute(
            "UPDATE webhook_endpoints SET old_secret_until = now() - interval '1 second'"
        )

        deliver_change(app, api)

        found = [is_verified(hook.received[0], secret) for secret in secrets]
        assert found == [False, True]

    def test_of_v1a_is_verified_by_the_public_key(self, app, api, hook):
        endpoint = create_endpoint(api, url=hook.url, types=["user.*"], signing="v1a")
        keys = [endpoint["public_key"], rotate(api, endpoint, "public_key")]

        deliver_change(app, api)

        (received,) = hook.received
        headers = received.headers
        content = f"{received.id}.{headers['webhook-timestamp']}.".encode() + received.body
        entries = headers["webhook-signature"].split(" ")
        assert [entry[:4] for entry in entries] == ["v1a,"] * 2
        signatures = [base64.b64decode(entry[4:]) for entry in entries]
        assert len(set(keys)) == 2
        for key in keys:
            assert any(_holds(key, signature, content) for signature in signatures)
            assert not any(_holds(key, signature, content + b" ") for signature in signatures)


class TestRetry:
    def test_keeps_the_id_and_signs_anew(self, app, api, hook, endpoint, quick):
        hook.judge = lambda _: 500 if len(hook.received) < 2 else 200

        deliver_change(app, api)

        assert len(hook.received) == 3
        assert len(set(hook.ids)) == 1
        for received in hook.received:
            standardwebhooks.Webhook(endpoint["secret"]).verify(received.body, received.headers)
        assert deliveries()[0].attempts == 3

    @pytest.mark.parametrize("status", [302, 404, 429, 500])
    def test_comes_after_an_answer_that_is_no_success(self, app, api, hook, endpoint, status):
        hook.status, hook.body = status, b"\xff\x00 no"
        change(api, create_tenant())

        deliver(app, lambda: hook.received and statuses() == ["pending"])

        (row,) = deliveries()
        assert (row.response_code, row.attempts) == (status, 1)
        assert "no" in row.response_body
        assert 4 <= (row.next_attempt_at - row.attempted_at).total_seconds() < 9

    def test_comes_after_no_answer(self, app, api):
        create_endpoint(api, url="http://127.0.0.1:1/", types=["user.*"])
        change(api, create_tenant())

        deliver(app, lambda: [row.attempts for row in deliveries()] == [1])

        deliver(app, lambda: statuses() == ["pending"])
        assert deliveries()[0].error.startswith("no answer")

    def test_ends_after_ten_attempts(self, app, api, hook, endpoint, quick):
        hook.status = 500

        deliver_change(app, api, "failed")

        assert len(hook.received) == 10

    def test_waits_as_standard_webhooks_says(self):
        hour = 3600
        steps = [5, 300, 1800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]

        for attempts, step in enumerate(steps, start=1):
            waits = [attempt.wait_before(attempts) for _ in range(200)]
            assert 0.8 * step <= min(waits) < step < max(waits) <= 1.2 * step
            assert attempt.wait_before(attempts, 1.5 * step) == 1.5 * step
            assert attempt.wait_before(attempts, 100 * step) == 2 * step

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("7", 7),
            *dict.fromkeys(["", "-1", "soon", "٣"], 0).items(),
            (f"Mon, 1 Jan {'9' * 5000} 00:00:00 GMT", 0),
            ("Mon, 1 Jan 0001 00:00:00 +9999", 0),
            ("9" * 30, 7 * 86_400),
            ("Mon, 99999999999999999999 Jan 1 00:00:00 GMT", 7 * 86_400),
            ("Fri, 31 Dec 9999 23:59:59 -99999999999999", 7 * 86_400),
        ],
    )
    def test_reads_retry_after(self, text, seconds):
        moment = (utcnow() + timedelta(seconds=60)).strftime("%a, %d %b %Y %H:%M:%S GMT")

        assert attempt.retry_after(text) == seconds
        assert 55 < attempt.retry_after(moment) <= 60

    def test_a_late_result_changes_nothing(self, app, api, hook, endpoint):
        change(api, create_tenant())
        with app.app_context():
            add_deliveries()
            (late,) = claim()
            database.execute("UPDATE webhook_deliveries SET next_attempt_at = now()")
            (current,) = claim()

            work.exchange([attempt.Result(late, code=500)], 0)
            assert statuses() == ["sending"]
            work.exchange([attempt.Result(current, code=200)], 0)

        assert statuses() == ["succeeded"]


class TestIsolation:
    def test_an_endpoint_gets_at_most_five_at_a_time(self, app, api, hook, endpoint):
        hook.delay = 0.4
        tenant = create_tenant()
        for number in range(15):
            change(api, tenant, name=f"Name {number}")

        with sender(app), sender(app):
            wait_until(lambda: len(hook.received) == 15)

        assert hook.most_at_once == 5

    def test_a_dead_endpoint_delays_no_other(self, app, api, hook):
        ended = threading.Event()
        with receiver(judge=lambda _: 500 if ended.wait(30) else 504) as dead:
            create_endpoint(api, url=dead.url, types=["user.*"])
            create_endpoint(api, url=hook.url, types=["user.*"])
            tenant = create_tenant()
            for number in range(15):
                change(api, tenant, name=f"Name {number}")

            with sender(app):
                wait_until(lambda: len(hook.received) == 15, seconds=attempt.TIMEOUT / 2)
                assert dead.received == []
                ended.set()

    def test_slow_receivers_of_two_tenants_delay_no_third_tenant(self, app, api, hook):
        with receiver(delay=5) as slow:
            for tenant in (create_tenant(), create_tenant()):
                for _ in range(20):
                    create_endpoint(api, url=slow.url, types=["user.*"], tenant_id=str(tenant.id))
                for number in range(12):
                    change(api, tenant, name=f"Name {number}")
            third = create_tenant()
            create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(third.id))

            with sender(app):
                wait_until(lambda: slow.at_once >= 50)
                for count in range(1, 4):
                    change(api, third)
                    wait_until(lambda count=count: len(hook.received) >= count, seconds=4.5)
                    time.sleep(0.4)
                wait_until(lambda: slow.at_once >= 45)  # they go on

    def test_one_tenants_endpoints_get_at_most_half_of_what_a_sender_makes(self, app, api, hook):
        tenant = create_tenant()
        for _ in range(12):
            create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))
        for number in range(5):
            change(api, tenant, name=f"Name {number}")
        platforms = create_endpoint(api, url=hook.url, types=["user.*"])
        change(api, create_tenant())

        with app.app_context():
            add_deliveries()
            claimed, _ = work.exchange([], 100)
            again, _ = work.exchange([], 100)

        owners = Counter(str(one.endpoint.tenant_id) for one in claimed)
        assert owners[str(tenant.id)] == 50
        assert platforms["id"] in {str(one.endpoint.id) for one in claimed}
        assert str(tenant.id) not in {str(one.endpoint.tenant_id) for one in again}

    def test_keeps_to_the_rate_limit(self, app, api, hook):
        create_endpoint(api, url=hook.url, types=["user.*"], rate_limit=4)
        tenant = create_tenant()
        for number in range(10):
            change(api, tenant, name=f"Name {number}")

        deliver(app, lambda: len(hook.received) == 10)

        moments = [one.at for one in hook.received]
        for first, fifth in zip(moments, moments[4:], strict=False):
            assert fifth - first > 0.5
        assert moments[-1] - moments[0] > 1.5


class TestDisabling:
    def test_after_410_at_once_with_an_event(self, app, api, hook, endpoint):
        with receiver() as other:
            create_endpoint(api, url=other.url, types=["webhook_endpoint.disabled"])
            hook.status = 410
            change(api, create_tenant())
            deliver(app, lambda: "failed" in statuses())
            api.sequence()
            deliver(app, lambda: other.received)

            event = json.loads(other.received[0].body)

        assert event["type"] == "webhook_endpoint.disabled"
        assert event["data"]["id"] == endpoint["id"]
        assert event["data"]["disabled_reason"] == "gone"
        assert event["data"]["tenant_id"] is None
        assert "secret" not in json.dumps(event).replace("old_secret_until", "")
        shown = api.get(f"{PATH}/{endpoint['id']}", token=platform_token()).get_json()["data"]
        assert (shown["is_active"], shown["disabled_reason"]) == (False, "gone")

    def test_after_120_hours_of_nothing_but_failure(self, app, api, hook, endpoint, quick):
        hook.status = 500
        deliver_change(app, api, "failed")
        assert endpoint_row().is_active
        database.execute(
            "UPDATE webhook_endpoint_states SET failing_since = failing_since - interval '120 h'"
        )

        change(api, create_tenant())
        deliver(app, lambda: not endpoint_row().is_active)

        assert endpoint_row().disabled_reason == "failing"

    def test_not_where_one_succeeded_meanwhile(self, app, api, hook, endpoint, quick):
        hook.status = 500
        deliver_change(app, api, "failed")
        hook.status = 200
        change(api, create_tenant())
        deliver(app, lambda: statuses() == ["failed", "succeeded"])

        assert state().failing_since is None

    def test_is_undone_by_activating(self, app, api, hook, endpoint):
        hook.status = 410
        change(api, create_tenant())
        deliver(app, lambda: not endpoint_row().is_active)

        answer = api.patch(
            f"{PATH}/{endpoint['id']}", token=platform_token(), json={"is_active": True}
        )

        shown = answer.get_json()["data"]
        assert (shown["is_active"], shown["disabled_reason"]) == (True, None)
        assert state().failing_since is None


class TestRequests:
    def test_lists_deliveries(self, app, api, hook, endpoint):
        hook.body = "ä".encode() * 10_000
        deliver_change(app, api)

        path = f"{PATH}/{endpoint['id']}/deliveries"
        (shown,) = api.get(path, token=platform_token()).get_json()["data"]
        failed = api.get(path, token=platform_token(), query_string={"status": "failed"})

        assert shown["event_id"] == hook.ids[0]
        assert (shown["status"], shown["response_code"]) == ("succeeded", 200)
        assert shown["response_body"] == "ä" * 2048
        assert failed.get_json()["data"] == []

    @pytest.mark.parametrize(("status", "result"), [(200, "succeeded"), (500, "failed")])
    def test_sends_an_example_once(self, app, api, hook, quick, status, result):
        endpoint = create_endpoint(api, url=hook.url)
        hook.status = status

        answer = api.post(
            f"{PATH}/{endpoint['id']}/test",
            token=platform_token(),
            json={"type": "tenant.suspended"},
        )
        deliver(app, lambda: statuses() == [result])

        assert answer.status_code == 200
        (received,) = hook.received
        body = json.loads(received.body)
        assert (body["type"], body["id"]) == ("tenant.suspended", received.id)
        assert body["data"]["slug"]
        assert is_verified(received, endpoint["secret"])

    @pytest.mark.parametrize(
        ("action", "body"), [("test", {"type": "user.created"}), ("recover", {"since": 0})]
    )
    def test_sends_nothing_to_an_inactive_endpoint(self, api, action, body):
        path = f"{PATH}/{create_endpoint(api)['id']}"
        api.patch(path, token=platform_token(), json={"is_active": False})

        answer = api.post(f"{path}/{action}", token=platform_token(), json=body)

        assert answer.status_code == 409
        assert answer.get_json()["code"] == "webhook_endpoint_inactive"

    def test_sends_tests_only_to_an_endpoint_that_was_created_inactive(self, app, api, hook):
        endpoint = create_endpoint(api, url=hook.url, types=["user.*"], is_active=False)
        path = f"{PATH}/{endpoint['id']}"
        assert endpoint["disabled_reason"] == "untested"
        change(api, create_tenant())
        with app.app_context():
            add_deliveries()
        assert statuses() == []

        api.post(f"{path}/test", token=platform_token(), json={"type": "user.created"})
        deliver(app, lambda: statuses() == ["succeeded"])
        answer = api.patch(path, token=platform_token(), json={"is_active": True})

        assert len(hook.received) == 1
        assert answer.get_json()["data"]["disabled_reason"] is None
        change(api, create_tenant())
        deliver(app, lambda: len(hook.received) == 2)

    def test_sends_again_with_the_same_id(self, app, api, hook, endpoint):
        deliver_change(app, api)
        (row,) = deliveries()

        answer = api.post(f"/v1/webhook-deliveries/{row.id}/resend", token=platform_token())
        assert answer.get_json()["data"]["status"] == "pending"
        deliver(app, lambda: len(hook.received) == 2 and statuses() == ["succeeded"])

        assert len(set(hook.ids)) == 1

    def test_recovers_what_failed_and_what_was_missed(self, app, api, hook, quick):
        started, tenant = utcnow(), create_tenant()
        endpoint = create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))
        path = f"{PATH}/{endpoint['id']}"
        hook.status = 500
        change(api, tenant)
        deliver(app, lambda: statuses() == ["failed"])
        api.patch(path, token=platform_token(), json={"is_active": False})
        change(api, tenant)
        change(api, create_tenant())
        _wait_until_fed(app)
        api.patch(path, token=platform_token(), json={"is_active": True})
        hook.status = 200
        hook.received.clear()

        recovered = _recover(api, endpoint, started)
        deliver(app, lambda: statuses() == ["succeeded"] * 2)
        again = _recover(api, endpoint, started)

        assert recovered == {"resent": 1, "missed": 1, "is_complete": True}
        assert len(set(hook.ids)) == len(hook.received) == 2
        assert again == {"resent": 0, "missed": 0, "is_complete": True}

    def test_makes_due_now_what_waits_for_another_attempt(self, app, api, hook, endpoint):
        """The receiver is repaired before the next attempt, which would be in minutes."""
        started, hook.status = utcnow(), 500
        change(api, create_tenant())
        deliver(app, lambda: [(row.status, row.response_code) for row in deliveries()] == WAITING)
        hook.status = 200

        recovered = _recover(api, endpoint, started)
        deliver(app, lambda: statuses() == ["succeeded"])

        assert recovered == {"resent": 1, "missed": 0, "is_complete": True}

    def test_sends_a_new_endpoint_no_older_events(self, app, api, hook, tenant):
        """Such as after the sender was stopped."""
        for _ in range(2):
            create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))
        change(api, tenant)
        old, new = database.rows(WebhookEndpoint)
        later = utcnow() + timedelta(minutes=1)
        database.execute(
            "UPDATE webhook_endpoints SET created_at = :at WHERE id = :id", at=later, id=str(new.id)
        )

        deliver(app, lambda: statuses() == ["succeeded"])

        assert [row.endpoint_id for row in deliveries()] == [old.id]

    def test_recovers_no_events_from_before_the_endpoint_was_created(self, app, api, hook):
        started, tenant = utcnow(), create_tenant()
        change(api, tenant)
        _wait_until_fed(app)
        endpoint = create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))

        found = [_recover(api, endpoint, since)["missed"] for since in (utcnow(), started)]

        assert found == [0, 0]


def _recover(api, endpoint, since) -> dict:
    path, body = f"{PATH}/{endpoint['id']}/recover", {"since": since.isoformat()}
    return api.post(path, token=platform_token(), json=body).get_json()["data"]


def _wait_until_fed(app) -> None:
    """Let a sender see every event."""
    deliver(app, lambda: _fed() == _given())


def _fed() -> int:
    return database.query("SELECT max(position) AS position FROM webhook_feed")[0].position


def _given() -> int:
    return database.query("SELECT max(last_position) AS position FROM event_feed")[0].position


def _holds(key: str, signature: bytes, content: bytes) -> bool:
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.removeprefix("whpk_")))
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True
