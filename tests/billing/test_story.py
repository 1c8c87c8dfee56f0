"""From nothing to seats that are the quantity of a Stripe subscription, and to its end."""

from datetime import timedelta

from app.auth.permissions import Permission
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from tests.billing.reading import post_all, reader_of, wait_for
from tests.billing.simulated.base import Line
from tests.conftest import Api, serving
from tests.factories import create_api_key, create_limits, limit_flag, platform_token, preset_flag


def test_seats_and_flags_follow_a_subscription_from_its_trial_to_its_end(
    app, reading, stripe, tenant
):
    create_limits("free", limit_flag("seats", 1), preset_flag("sso", False))
    create_limits("team", limit_flag("seats", 3), preset_flag("sso", True))
    api, key = Api(reading), create_api_key(tenant, [Permission.FLAGS_READ])

    def shown():
        """The flag, and the limit of seats, as the customer's program and the operator see them."""
        body = {"context": {"targetingKey": "user-1"}}
        flag = api.post("/ofrep/v1/evaluate/flags/sso", token=key, json=body).json["value"]
        path = f"/v1/usage?tenant_id={tenant.id}"
        limits = api.get(path, token=platform_token()).json["data"]
        return flag, {one["feature"]: one["limit"] for one in limits}["seats"]

    def tell():
        """Stripe tells what has happened, and the service reads and applies it."""
        ids = post_all(reading, stripe)
        assert ids
        with reader_of(reading):
            assert {wait_for(one).status for one in ids} <= {"succeeded", "ignored"}

    def connect(application, url):
        return application.test_cli_runner().invoke(
            args=["billing", "connect", "stripe", "--url", url]
        )

    # Connected: the command says what is missing, and then that everything works.
    before = connect(app, "https://billing.example.com")
    assert before.exit_code == 1
    assert "https://billing.example.com/webhooks/billing/stripe" in before.stdout
    assert "WEBHOOK_SECRETS_STRIPE=" in before.stdout
    assert "STRIPE_API_KEY=" in before.stdout
    with serving(reading) as url:
        after = connect(reading, url)
    assert after.exit_code == 0, after.output
    assert "API key: works" in after.stdout
    assert "200" in after.stdout

    # A price gives the plan, and its quantity the seats.
    price = {"provider": "stripe", "lookup_key": "team", "plan_name": "team", "limit_key": "seats"}
    assert api.put("/v1/billing/prices", token=platform_token(), json=price).status_code == 200
    assert shown() == (False, 1)

    trial = timedelta(days=14)
    one = stripe.create(Line("team", 12, 900), tenant=str(tenant.id), trial=trial)
    tell()
    assert shown() == (True, 12)
    assert listed(api)["is_free_trial"] is True

    stripe.advance(trial)
    tell()
    assert (listed(api)["bp_status"], shown()) == ("active", (True, 12))

    stripe.change(one, Line("team", 20, 900))
    tell()
    assert shown() == (True, 20)

    one.customer.declines = True
    stripe.advance(timedelta(days=31))
    tell()
    assert (listed(api)["bp_status"], shown()) == ("past_due", (True, 20))

    stripe.advance(timedelta(days=15))
    tell()
    assert (listed(api)["bp_status"], shown()) == ("canceled", (False, 1))

    # Every event of the subscription is found by its id, and nothing is left to repair.
    path = f"/v1/webhooks/events?bp_subscription_id={one.id}"
    told = [each["event_type"] for each in api.get(path, token=platform_token()).json["data"]]
    assert told[0] == "customer.subscription.created"
    assert told[-1] == "customer.subscription.deleted"
    path = "/v1/billing/providers/stripe/reconcile"
    assert api.post(path, token=platform_token()).status_code == 202
    with reading.app_context():
        make_worker(reading, [Queue.MAINTENANCE]).work(burst=True, logging_level="WARNING")
    (state,) = api.get("/v1/billing/providers", token=platform_token()).json["data"]
    assert (state["compared"], state["repaired"], state["is_comparing"]) == (1, {}, False)


def listed(api):
    """The only subscription."""
    return api.get("/v1/billing/subscriptions", token=platform_token()).json["data"][0]
