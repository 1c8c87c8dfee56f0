"""Copy each subscription that has changed at Stripe."""

import hmac
import os
import time
from datetime import UTC, datetime

import requests
from flask import Flask, abort, request

STRIPE = os.environ.get("STRIPE_API", "https://api.stripe.com") + "/v1/subscriptions"
OURS = os.environ["API"] + "/v1/billing/subscriptions"
HEADERS = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
CYCLES = {"week": "weekly", "month": "monthly", "year": "annual"}
app = Flask(__name__)


def is_signed(body, header):
    parts = [part.split("=", 1) for part in header.split(",") if "=" in part]
    sent = dict(parts).get("t", "0")
    secret = os.environ["STRIPE_WEBHOOK_SECRET"].encode()
    expected = hmac.digest(secret, sent.encode() + b"." + body, "sha256").hex()
    is_recent = abs(time.time() - int(sent)) < 300
    return is_recent and any(hmac.compare_digest(value, expected) for _, value in parts)


def call(method, url, **options):
    answer = requests.request(method, url, timeout=10, **options)
    answer.raise_for_status()  # the answer is then 500, and Stripe sends the event again
    return answer.json()


def copy(stripe_id):
    read_at = datetime.now(UTC).isoformat()
    current = call("GET", f"{STRIPE}/{stripe_id}", auth=(os.environ["STRIPE_KEY"], ""))
    price = current["items"]["data"][0]["price"]
    fields = {
        "bp_customer_id": current["customer"],
        "bp_plan_id": price["id"],
        "bp_status": current["status"],
        "plan_name": price["lookup_key"],
        "auto_renew": not current["cancel_at_period_end"],
        "billing_cycle": CYCLES[price["recurring"]["interval"]],
        "per_cycle_billing_amount": price["unit_amount"],
        "start_date": datetime.fromtimestamp(current["start_date"], UTC).isoformat(),
    }
    query = {"bp_subscription_id": stripe_id}
    found = call("GET", OURS, headers=HEADERS, params=query)["data"]
    if not found:
        tenant = {"tenant_id": current["metadata"]["tenant_id"]}
        found = [call("POST", OURS, headers=HEADERS, params=tenant, json=fields | query)["data"]]
    timed = HEADERS | {"X-Source-Timestamp": read_at}
    call("PATCH", f"{OURS}/{found[0]['id']}", headers=timed, json=fields)


@app.post("/stripe")
def receive():
    if not is_signed(request.get_data(), request.headers.get("Stripe-Signature", "")):
        abort(401)
    event = request.get_json(force=True)
    if event["type"].startswith("customer.subscription."):
        copy(event["data"]["object"]["id"])
    return "", 204
