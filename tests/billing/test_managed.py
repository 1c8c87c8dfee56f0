"""What the provider's events decide is changed at the provider, or by force."""

import pytest

from app import create_app
from app.audit.models import AuditEvent
from app.billing.handler import wrong_mode
from app.extensions import db
from tests import database
from tests.billing.support import snapshot, stored
from tests.conftest import Api
from tests.factories import create_api_key, platform_token
from tests.imports.files import bring_in, subscription_line

PATH = "/v1/billing/subscriptions"


@pytest.fixture(scope="module")
def receiving(app, environment):
    """The application with a receiver of Stripe's events, in test mode."""
    settings = {"WEBHOOK_SECRETS_STRIPE": "whsec_secret", "BILLING_LIVEMODE": "0"}
    made = create_app({**environment, **settings})
    yield made
    with made.app_context():
        db.engine.dispose()


@pytest.fixture
def api(receiving):
    return Api(receiving)


@pytest.fixture
def path(mirror, tenant):
    mirror.apply(snapshot(tenant=tenant.slug))
    return f"{PATH}/{stored().id}"


class TestWhileEventsAreReceived:
    @pytest.mark.parametrize(
        "body", [{"bp_status": "paused"}, {"plan_name": "x"}, {"auto_renew": False}]
    )
    def test_a_change_of_the_providers_fields_is_refused(self, api, path, body):
        before = stored()

        answer = api.patch(path, token=platform_token(), json=body)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "managed_by_provider")
        assert stored() == before

    def test_a_cancellation_is_refused(self, api, path, owner):
        for token in (owner, platform_token()):
            answer = api.post(f"{path}/cancel", token=token, json={})
            assert answer.get_json()["code"] == "managed_by_provider"

    def test_other_fields_can_be_changed(self, api, path, owner):
        answer = api.patch(path, token=owner, json={"billing_city": "Springfield"})

        assert answer.status_code == 200

    def test_a_superadmin_may_force_it(self, api, path):
        token = platform_token()
        first = api.patch(f"{path}?force=true", token=token, json={"plan_name": "x"})
        second = api.post(f"{path}/cancel?force=true", token=token, json={})

        assert [first.status_code, second.status_code] == [200, 200]
        assert stored().status_class == "ended"
        assert {
            row.actor
            for row in database.rows(AuditEvent)
            if row.action in ("subscription.updated", "subscription.canceled")
        } == {"platform:platform-operator"}

    def test_nobody_else_may(self, api, path, owner):
        key = create_api_key(None, ["billing:write"])
        for token in (owner, key):
            for method, at in (("patch", path), ("post", f"{path}/cancel")):
                answer = api.request(
                    method,
                    f"{at}?force=true",
                    token=token,
                    json={"billing_city": "x"} if method == "patch" else {},
                )
                assert answer.get_json()["code"] == "permission_denied"

    def test_a_row_of_another_provider_is_not_managed(self, api, mirror, tenant):
        mirror.apply(snapshot(tenant=tenant.slug), provider="paddle")
        path = f"{PATH}/{stored().id}"

        assert api.post(f"{path}/cancel", token=platform_token(), json={}).status_code == 200

    def test_a_line_of_an_import_is_refused_alone(self, receiving, api, tenant, path):
        line = subscription_line("sub_1", tenant.idp_org_id, bp_status="paused")
        other = subscription_line("sub_2", tenant.idp_org_id)

        _, faults = bring_in(receiving, api, line, other)

        assert [fault.name for fault in faults] == ["sub_1"]
        assert stored(bp_subscription_id="sub_2").bp_provider is None
        assert stored(bp_subscription_id="sub_1").bp_status == "active"

    def test_live_mode_is_ignored(self, receiving):
        with receiving.app_context():
            assert wrong_mode(snapshot(is_live=True)) == "live mode"
            assert wrong_mode(snapshot(is_live=None)) is None


class TestWithoutReceiver:
    def test_everything_is_as_it_was(self, app, path):
        answer = Api(app).patch(path, token=platform_token(), json={"plan_name": "x"})

        assert answer.status_code == 200
