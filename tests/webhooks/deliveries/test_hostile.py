"""What a tenant, or a receiver, may try against the sender."""

import gzip
import time

import pytest

from app.webhooks.deliveries import attempt
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.endpoints.models import WebhookEndpoint
from tests import database
from tests.concurrency import at_once
from tests.core.test_outgoing import raw_server
from tests.factories import create_tenant, create_user, platform_token
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until
from tests.webhooks.endpoints.support import URL, create_endpoint, token_of

PATH = "/v1/webhook-endpoints"


@pytest.fixture
def hook():
    with receiver() as found:
        yield found


def deliver_one(app, api) -> WebhookDelivery:
    """Deliver one event; the delivery after its first attempt."""
    user = create_user(create_tenant())
    api.patch(f"/v1/users/{user.id}", token=platform_token(), json={"first_name": "New"})
    api.sequence()
    with sender(app):
        wait_until(
            lambda: (
                [row.status for row in database.rows(WebhookDelivery)]
                in (["succeeded"], ["pending"])
                and database.rows(WebhookDelivery)[0].attempts == 1
            )
        )
    return database.row(WebhookDelivery)


class TestTypes:
    @pytest.mark.parametrize("pattern", ["plan.*", "plan.created", "plan*", "pl*", "email*", "em*"])
    def test_of_the_platform_are_refused_for_a_tenant(self, api, pattern):
        token = token_of(create_tenant())

        answer = api.post(PATH, token=token, json={"url": URL, "types": [pattern]})

        assert answer.status_code == 422

    @pytest.mark.parametrize("pattern", ["**", "user.**", "*.created", "u*r", "", " *", "*\0"])
    def test_with_a_star_elsewhere_are_refused(self, api, pattern):
        answer = api.post(PATH, token=platform_token(), json={"url": URL, "types": [pattern]})

        assert answer.status_code == 422


class TestHeaders:
    @pytest.mark.parametrize(
        "name",
        [
            "Host", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive",
            "Proxy-Authorization", "TE", "Trailer", "Upgrade", "Expect", "webhook-signature",
            "Webhook-Anything", "traceparent", "X-A\r\nX-B", "X-A:", "", "X-Ä",
        ],
    )  # fmt: skip
    def test_of_the_service_are_refused(self, api, name):
        body = {"url": URL, "types": ["*"], "headers": {name: "x"}}

        assert api.post(PATH, token=platform_token(), json=body).status_code == 422


class TestLimits:
    def test_of_endpoints_holds_under_concurrency(self, app, api):
        token = token_of(create_tenant())
        body = {"url": URL, "types": ["*"]}
        for _ in range(15):
            create_endpoint(api, token)

        answers = at_once([lambda: api.post(PATH, token=token, json=body)] * 12)

        codes = sorted((answer.status_code, answer.json.get("code")) for answer in answers)
        assert codes == [(201, None)] * 5 + [(409, "too_many_webhook_endpoints")] * 7
        assert len(database.rows(WebhookEndpoint)) == 20
        create_endpoint(api, tenant_id=str(create_tenant().id))


class TestReceivers:
    def deliver_raw(self, app, api, *parts, pause=0.0):
        def answer(connection):
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)

        with raw_server(answer) as port:
            create_endpoint(api, url=f"http://127.0.0.1:{port}/", types=["user.*"])
            return deliver_one(app, api)

    def test_that_answer_a_byte_at_a_time_are_cut_off(self, app, api, monkeypatch):
        monkeypatch.setattr(attempt, "TIMEOUT", 0.5)

        delivery = self.deliver_raw(app, api, b"HTTP/1.1 200 OK\r\n", *([b"X"] * 100), pause=0.1)

        assert (delivery.status, delivery.error) == ("pending", "the answer takes too long")
        assert 400 < delivery.duration_ms < 3000

    def test_that_answer_with_a_bomb_are_stored_as_they_are(self, app, api, hook):
        hook.body, hook.headers = gzip.compress(b"0" * 50_000_000), {"Content-Encoding": "gzip"}
        create_endpoint(api, url=hook.url, types=["user.*"])

        delivery = deliver_one(app, api)

        assert delivery.status == "succeeded"
        assert "000" not in delivery.response_body
