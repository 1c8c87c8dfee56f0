"""``Idempotency-Key``: one effect and one answer, whenever and however often it is sent."""

import threading

import pytest

from app.core.db.transactions import current_transaction
from app.core.http import idempotency
from app.core.http.idempotency import forget_expired
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_api_key,
    create_preset,
    create_subscription,
    create_tenant,
    platform_token,
    platform_transaction,
)

ADA = {"idp_user_id": "u1", "email": "ada@example.com"}


@pytest.fixture
def post(api, owner):
    """Create a user under a key."""

    def send(body=ADA, key: str = "k"):
        return api.post("/v1/users", token=owner, json=body, headers={"Idempotency-Key": key})

    return send


def users_named(email: str) -> int:
    return len(database.rows(User, email=email))


class TestKey:
    def test_gives_the_first_answer_again(self, post):
        first, again = post(), post()

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.data == first.data
        assert again.headers["Location"] == first.headers["Location"]
        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true"
        assert users_named("ada@example.com") == 1

    def test_repeats_the_status_and_not_the_body_of_a_large_answer(self, post, monkeypatch):
        monkeypatch.setattr(idempotency, "MAX_BODY", 100)

        first, again = post(), post()

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["Location"] == first.headers["Location"]
        assert again.headers["Idempotent-Replayed"] == "true"
        assert "too large" in again.get_json()["detail"]
        (stored,) = database.query("SELECT length(body) AS size FROM idempotency_keys")
        assert stored.size < 100

    def test_has_one_effect_for_requests_at_the_same_moment(self, post):
        answers = at_once([post] * 4)

        assert len({answer.data for answer in answers}) == 1
        assert users_named("ada@example.com") == 1

    def test_is_free_again_after_a_refusal(self, post):
        refused = post({"idp_user_id": "u1"})
        accepted = post()

        assert (refused.status_code, accepted.status_code) == (422, 201)

    def test_is_free_again_after_a_day(self, post):
        post({**ADA, "idp_user_id": "u0", "email": "bob@example.com"})
        database.execute("UPDATE idempotency_keys SET created_at = created_at - interval '1 day'")

        assert post().headers.get("Idempotent-Replayed") is None
        assert users_named("ada@example.com") == 1

    def test_is_refused_where_it_is_too_long_or_empty(self, post):
        for key in ("", "k" * 256):
            answer = post(key=key)

            assert answer.status_code == 422
            assert answer.get_json()["detail"][0]["loc"] == ["header", "idempotency-key"]

    def test_of_another_request_is_refused_with_a_type_of_its_own(self, post):
        post()
        answer = post({**ADA, "first_name": "Ada"})

        (entry,) = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert entry["type"] == "idempotency_key_reused"
        assert (entry["loc"], entry["input"]) == (["header", "idempotency-key"], "k")

    @pytest.mark.parametrize(
        "other",
        [
            {"query_string": {"x": "1"}},
            {"headers": {"If-Match": "*"}},
            {"headers": {"If-Match": '"2"'}},
            {"headers": {"X-Source-Timestamp": "2026-01-01T00:00:01Z"}},
            {"headers": {"Content-Type": "application/merge-patch+json"}},
            {"data": b'{"bp_status":  "past_due"}'},
        ],
        ids=lambda other: str(*other.values()),
    )
    def test_belongs_to_query_body_and_the_headers_that_decide(self, api, other):
        subscription = create_subscription(create_tenant())
        headers = {
            "Idempotency-Key": "k",
            "Content-Type": "application/json",
            "X-Source-Timestamp": "2026-01-01T00:00:00Z",
        }

        def send(**changed):
            sent = {"data": b'{"bp_status": "past_due"}', **changed}
            sent["headers"] = headers | sent.get("headers", {})
            path = f"/v1/billing/subscriptions/{subscription.id}"
            return api.patch(path, token=platform_token(), **sent)

        first, again, reused = send(), send(), send(**other)

        assert (first.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
        assert reused.status_code == 422
        assert reused.get_json()["detail"][0]["type"] == "idempotency_key_reused"

    def test_of_a_request_that_still_runs_is_a_conflict(self, app, post, monkeypatch):
        monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.1)
        post()
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with platform_transaction():
                current_transaction().execute("DELETE FROM idempotency_keys")
                held.set()
                done.wait(10)

        first = threading.Thread(target=hold)
        first.start()
        held.wait(10)
        answer = post()
        done.set()
        first.join()

        assert answer.status_code == 409
        assert answer.get_json()["code"] == "idempotency_in_progress"

    @pytest.mark.parametrize("path", ["flags/unknown", "flags"])
    def test_of_an_answer_that_is_no_success_is_not_kept(self, api, path):
        tenant = create_tenant()
        create_preset(tenant.plan_name, seats=5)
        key = create_api_key(tenant, ["flags:read"])
        body = {"context": {"targetingKey": "u1"}}
        etag = api.post("/ofrep/v1/evaluate/flags", token=key, json=body).headers["ETag"]
        headers = {"Idempotency-Key": "k", "If-None-Match": etag}

        answers = [
            api.post(f"/ofrep/v1/evaluate/{path}", token=key, json=body, headers=headers)
            for _ in range(2)
        ]

        assert answers[0].status_code in (304, 404)
        assert answers[1].status_code == answers[0].status_code
        assert answers[1].data == answers[0].data

    def test_is_forgotten_after_a_day(self, post):
        post()
        database.execute(
            "UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'"
        )

        with platform_transaction():
            assert forget_expired(10) == 1
