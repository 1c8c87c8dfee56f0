"""The flags as an application sees them: OpenFeature's SDK and its OFREP provider, over HTTP."""

import pytest
from openfeature import api as openfeature
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason

from app.auth.permissions import Permission
from tests.factories import (
    create_api_key,
    create_limits,
    create_override,
    create_preset,
    create_tenant,
    limit_flag,
)

CONTEXT = EvaluationContext(targeting_key="user-1", attributes={"country": "CA"})
LIMITS = {"projects": 3, "ratio": 0.5, "tiers": ["a", {"b": None}]}
FREE = {"beta": False, "theme": "plain", "seats": 5, "ratio": 0.5, "limits": LIMITS}
GROWTH = {"beta": True, "theme": "rich", "seats": 50, "ratio": 2.0, "limits": [1, 2]}


@pytest.fixture
def client_of(base_url):
    """Makes an SDK client with a tenant's key; with a platform key for None."""

    def make(tenant):
        key = create_api_key(tenant, [Permission.FLAGS_READ])
        provider = OFREPProvider(
            base_url, headers_factory=lambda: {"Authorization": f"Bearer {key}"}
        )
        domain = "platform" if tenant is None else str(tenant.id)
        openfeature.set_provider(provider, domain)
        return openfeature.get_client(domain)

    yield make
    openfeature.clear_providers()


@pytest.fixture
def free():
    return create_preset("free", **FREE)


@pytest.fixture
def growth():
    return create_preset("growth", **GROWTH)


def resolve_all(client, context=None):
    return {
        "beta": client.get_boolean_value("beta", None, context),
        "theme": client.get_string_value("theme", "?", context),
        "seats": client.get_integer_value("seats", -1, context),
        "ratio": client.get_float_value("ratio", -1.0, context),
        "limits": client.get_object_value("limits", {}, context),
    }


class TestOpenFeatureClient:
    def test_resolves_every_type_for_tenants_of_two_plans(self, client_of, free, growth):
        one, two = create_tenant(plan_name="free"), create_tenant(plan_name="growth")

        first, second = resolve_all(client_of(one)), resolve_all(client_of(two))

        assert (first, second) == (FREE, GROWTH)

    def test_tells_why(self, client_of, free):
        client = client_of(create_tenant())

        details = client.get_boolean_details("beta", True, CONTEXT)

        assert (details.value, details.reason, details.variant) == (False, Reason.STATIC, "preset")
        assert details.flag_metadata == {"plan": "free"}
        assert details.error_code is None

    def test_resolves_limits_as_integers(self, client_of):
        preset = create_limits("pro", limit_flag("calls", 10**15), limit_flag("projects", -1))
        tenant, other = create_tenant(plan_name="pro"), create_tenant(plan_name="pro")
        create_override(other, preset, "calls", 7)

        found = [client_of(one).get_integer_details("calls", 0) for one in (tenant, other)]

        assert [(one.value, one.reason) for one in found] == [
            (10**15, Reason.STATIC),
            (7, Reason.TARGETING_MATCH),
        ]
        assert client_of(tenant).get_integer_value("projects", 0) == -1

    def test_falls_back_where_the_type_is_another(self, client_of, free):
        client = client_of(create_tenant())

        text = client.get_boolean_details("theme", True)
        whole = client.get_float_details("seats", 1.5)

        assert (text.value, text.error_code) == (True, ErrorCode.TYPE_MISMATCH)
        assert (whole.value, whole.error_code) == (1.5, ErrorCode.TYPE_MISMATCH)

    def test_of_one_back_end_resolves_every_tenants_flags_with_a_platform_key(
        self, client_of, free, growth
    ):
        one, two = create_tenant(plan_name="free"), create_tenant(plan_name="growth")
        client = client_of(None)

        resolved = [
            resolve_all(client, EvaluationContext("user-1", {"tenant_id": name}))
            for name in (str(one.id), one.slug, two.slug, two.idp_org_id)
        ]

        assert resolved == [FREE, FREE, GROWTH, GROWTH]
