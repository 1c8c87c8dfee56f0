"""The flags as JavaScript sees them: the server and the web SDK with their OFREP providers.

``tests/package-lock.json`` pins the packages. They are installed once, into pytest's cache.
"""

import json
import subprocess
from pathlib import Path

import pytest

from app.auth.permissions import Permission
from tests.factories import (
    create_api_key,
    create_limits,
    create_override,
    create_tenant,
    limit_flag,
    preset_flag,
)
from tests.npm import node_with

SCRIPT = Path(__file__).with_name("openfeature.mjs")
LIMITS = {"projects": 3, "tiers": ["a", {"b": None}]}
FREE = {"beta": False, "theme": "plain", "seats": 5, "ratio": 0.5, "limits": LIMITS, "calls": 10}
GROWTH = {"beta": True, "theme": "rich", "seats": 50, "ratio": 2.0, "limits": [1], "calls": -1}
# Their types tell which function of the SDK resolves the flag.
DEFAULTS = {
    "beta": True,
    "theme": "?",
    "seats": -2,
    "ratio": -1.5,
    "limits": {"default": True},
    "calls": -2,
}


@pytest.fixture(scope="module")
def script(request):
    """Node and the script's arguments, with the packages beside the script."""
    return node_with(SCRIPT.parents[1], SCRIPT, request.config.cache)


@pytest.fixture
def run(script, base_url):
    """Runs the script with a key and one context after the other."""

    def run(kind, key, contexts, defaults=DEFAULTS):
        job = {"baseUrl": base_url, "key": key, "contexts": contexts, "defaults": defaults}
        done = subprocess.run(
            [*script, kind, json.dumps(job)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def tenants():
    """One tenant of each plan."""
    create_plan("free", FREE)
    create_plan("growth", GROWTH)
    return create_tenant(plan_name="free"), create_tenant(plan_name="growth")


def key_of(tenant):
    return create_api_key(tenant, [Permission.FLAGS_READ])


def create_plan(name, defaults):
    """A preset with a flag of each type; ``calls`` is a limit."""
    flags = {key: preset_flag(key, value) for key, value in defaults.items()}
    return create_limits(name, *{**flags, "calls": limit_flag("calls", defaults["calls"])}.values())


def values(resolved):
    return {key: details["value"] for key, details in resolved.items()}


@pytest.mark.parametrize("kind", ["server", "web"])
class TestProviders:
    def test_resolve_every_type_with_a_tenants_key(self, run, tenants, kind):
        tenant = tenants[1]

        [resolved] = run(kind, key_of(tenant), [{"targetingKey": "user-1"}])["resolved"]

        assert values(resolved) == GROWTH
        for details in resolved.values():
            assert (details["reason"], details["variant"]) == ("STATIC", "preset")
            assert details["plan"] == tenant.plan_name

    def test_resolve_every_tenants_flags_with_a_platform_key(self, run, tenants, kind):
        names = [tenants[0].slug, str(tenants[1].id), tenants[0].idp_org_id]
        contexts = [{"targetingKey": "user-1", "tenant_id": name} for name in names]

        resolved = run(kind, key_of(None), contexts)["resolved"]

        assert [values(one) for one in resolved] == [FREE, GROWTH, FREE]

    def test_tell_why(self, run, kind):
        preset, suspended = create_plan("free", FREE), create_tenant(is_active=False)
        tenant = create_tenant()
        create_override(tenant, preset, "theme", "own")
        contexts = [{"tenant_id": one.slug} for one in (tenant, suspended)]
        defaults = {"theme": "?", "seats": "text", "gamma": 7}

        own, disabled = run(kind, key_of(None), contexts, defaults)["resolved"]

        assert (own["theme"]["value"], own["theme"]["reason"]) == ("own", "TARGETING_MATCH")
        assert (disabled["theme"]["value"], disabled["theme"]["reason"]) == ("plain", "DISABLED")
        assert (own["seats"]["value"], own["seats"]["errorCode"]) == ("text", "TYPE_MISMATCH")
        assert (own["gamma"]["value"], own["gamma"]["errorCode"]) == (7, "FLAG_NOT_FOUND")


class TestServerProvider:
    def test_falls_back_without_a_tenant_or_a_credential(self, run, tenants):
        for key, error_code in ((key_of(None), "INVALID_CONTEXT"), ("sk_unknown", "GENERAL")):
            [resolved] = run("server", key, [{}])["resolved"]

            assert values(resolved) == DEFAULTS
            assert {details["errorCode"] for details in resolved.values()} == {error_code}


class TestWebProvider:
    def test_asks_again_with_the_etag_and_is_never_told_304_for_another_tenant(self, run):
        create_plan("free", FREE)
        one, two = create_tenant(), create_tenant()  # with equal flags
        contexts = [
            {"tenant_id": one.slug},
            {"tenant_id": two.slug},
            {"tenant_id": two.slug, "page": "start"},
        ]

        found = run("web", key_of(None), contexts)
        first, second, third = found["requests"]

        assert [values(resolved) for resolved in found["resolved"]] == [FREE, FREE, FREE]
        assert [first["status"], second["status"], third["status"]] == [200, 200, 304]
        assert first["etag"] != second["etag"] == third["etag"]
