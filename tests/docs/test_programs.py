"""The programs of the guides do what their pages say."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from app.auth.permissions import Permission
from app.core.clock import utcnow
from app.inbox.signatures.sending import sign
from tests.docs.pages import PROJECT, blocks
from tests.factories import create_api_key, create_preset, create_tenant, platform_token

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def program(page: str) -> Any:
    """A client of the program in a guide, or beside it."""
    path = PROJECT / "docs/guides" / page
    code = path.read_text()
    if path.suffix == ".md":
        (code,) = (block.code for block in blocks(path) if block.language == "python")
    names: dict[str, Any] = {"__name__": "handler"}
    exec(code, names)
    return names["app"].test_client()


@pytest.fixture
def stripe(monkeypatch, base_url):
    """A server with one subscription, ``stripe.subscription``, at Stripe's path."""

    class Stripe(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(self.server.subscription).encode()
            self.send_response(200 if self.path == "/v1/subscriptions/sub_7" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Stripe) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        key = create_api_key(None, [Permission.BILLING_READ, Permission.BILLING_WRITE])
        settings = {
            "API": base_url,
            "API_KEY": key,
            "STRIPE_KEY": "sk_test",
            "STRIPE_WEBHOOK_SECRET": SECRET,
        }
        settings["STRIPE_API"] = f"http://127.0.0.1:{server.server_port}"
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()
        thread.join()


def subscription_of(tenant, **values: Any) -> dict[str, Any]:
    """A subscription as Stripe answers it."""
    price = {
        "id": "price_1",
        "lookup_key": "growth",
        "unit_amount": 4900,
        "recurring": {"interval": "year", "interval_count": 1},
    }
    return {
        "customer": "cus_1",
        "status": "active",
        "cancel_at_period_end": False,
        "start_date": int(utcnow().timestamp()) - 3600,
        "metadata": {"tenant_id": str(tenant.id)},
        "items": {"data": [{"price": price, "quantity": 1}]},
        **values,
    }


def send(client: Any, secret: str = SECRET, kind: str = "customer.subscription.updated") -> int:
    """Post Stripe's event; the status of the answer."""
    raw = json.dumps({"type": kind, "data": {"object": {"id": "sub_7"}}}).encode()
    signed = sign("stripe", secret, raw, time.time())
    return client.post("/stripe", data=signed.body, headers=signed.headers).status_code


class TestBillingHandler:
    def test_creates_and_updates_the_subscription(self, api, stripe):
        create_preset("growth", beta=True)
        tenant, client = create_tenant(), program("billing_handler.py")
        statuses, found = [], []
        for status in ("trialing", "past_due"):
            stripe.subscription = subscription_of(tenant, status=status)
            statuses.append(send(client))
            listed = api.get("/v1/billing/subscriptions", token=platform_token()).json["data"]
            found += [(one["bp_status"], one["billing_cycle"]) for one in listed]

        assert statuses == [204, 204]
        assert found == [("trialing", "annual"), ("past_due", "annual")]
        assert listed[0]["per_cycle_billing_amount"] == 4900

    def test_refuses_a_forged_event(self, api, stripe):
        client = program("billing_handler.py")

        assert send(client, secret="another") == 401

    def test_ignores_other_events(self, api, stripe):
        client = program("billing_handler.py")

        assert send(client, kind="invoice.paid") == 204
        assert api.get("/v1/billing/subscriptions", token=platform_token()).json["data"] == []


class TestReceiver:
    @pytest.mark.parametrize(("secret", "status"), [(SECRET, 204), ("whsec_b3RoZXI=", 401)])
    def test_takes_only_signed_deliveries(self, monkeypatch, secret, status):
        monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
        raw = json.dumps({"type": "user.created", "data": {"id": "1"}})
        signature = Webhook(secret).sign("msg_1", utcnow(), raw)
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(utcnow().timestamp())),
            "webhook-signature": signature,
        }

        answer = program("webhook-endpoints.md").post("/billing", data=raw, headers=headers)

        assert answer.status_code == status
