"""``flask flags``, and the presets of ``flask plans``."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.factories import (
    create_limits,
    create_override,
    create_preset,
    create_tenant,
    limit_flag,
    preset_flag,
)


def runner(app, group):
    """Runs a command; what it printed as JSON, or its result where it failed."""

    def invoke(*words, ok=True, **options):
        result = app.test_cli_runner().invoke(args=[group, *map(str, words)], **options)
        assert (result.exit_code == 0) == ok, result.output
        return json.loads(result.stdout) if ok and "--json" in words else result

    return invoke


@pytest.fixture
def run(app):
    return runner(app, "flags")


@pytest.fixture
def plans(app):
    return runner(app, "plans")


class TestExplain:
    def test_names_the_override(self, run):
        preset, tenant = create_preset(beta=False), create_tenant()
        override = create_override(tenant, preset, "beta", True)

        told = run("explain", tenant.id, "beta", "--json")

        assert (told["value"], told["decided_by"]) == (True, "override")
        assert told["override_id"] == str(override.id)
        assert "override" in run("explain", tenant.id, "beta").stdout

    def test_names_an_override_that_does_not_count(self, run):
        preset = create_preset(beta=False, theme="a")
        tenant, suspended = create_tenant(), create_tenant(is_active=False)
        past = datetime(2020, 1, 1, tzinfo=UTC)
        create_override(tenant, preset, "beta", True, expires_at=past)
        create_override(tenant, preset, "theme", 5)
        create_override(suspended, preset, "beta", True)

        expired = run("explain", tenant.slug, "beta", "--json")
        misfit = run("explain", tenant.slug, "theme", "--json")
        disabled = run("explain", suspended.slug, "beta", "--json")

        assert expired["decided_by"] == "override_expired"
        assert (expired["value"], expired["expires_at"]) == (False, "2020-01-01T00:00:00Z")
        assert (misfit["decided_by"], misfit["value"]) == ("override_of_wrong_type", "a")
        assert (disabled["decided_by"], disabled["value"]) == ("tenant_suspended", False)

    def test_fails_for_what_is_not_there(self, run):
        create_preset(beta=False)
        tenant, without = create_tenant(), create_tenant(plan_name="none")

        assert "no flag gamma" in run("explain", tenant.slug, "gamma", ok=False).stderr
        assert "none has no flag beta" in run("explain", without.slug, "beta", ok=False).stderr
        assert "no tenant nobody" in run("explain", "nobody", "beta", ok=False).stderr


class TestPresetCommands:
    def test_make_show_and_replace(self, plans):
        flags = [preset_flag("beta", True), preset_flag("seats", 5.0)]

        made = plans("set", "growth", "-", "--json", input=json.dumps(flags))
        shown = plans("show", "growth", "--json")
        plans("set", "growth", "-", input=json.dumps(shown[1:]))

        assert (made["name"], shown) == ("growth", flags)
        assert plans("show", "growth", "--json") == flags[1:]

    def test_accepts_limits_as_they_are_printed(self, plans):
        create_limits("growth")
        shown = plans("show", "growth", "--json")

        plans("set", "growth", "-", input=json.dumps(shown))

        assert plans("show", "growth", "--json") == shown == [limit_flag()]
        assert [one["name"] for one in plans("list", "--json")] == ["growth"]

    def test_delete(self, plans):
        create_preset("growth")
        create_preset("free")
        create_tenant(plan_name="free")

        plans("delete", "growth", "--yes")

        assert "in use by tenants: 1" in plans("delete", "free", "--yes", ok=False).stderr
        assert [one["name"] for one in plans("list", "--json")] == ["free"]

    def test_refuse_what_is_no_list_of_flags(self, plans):
        twice = json.dumps([preset_flag("beta", True)] * 2)

        assert "not JSON" in plans("set", "x", "-", ok=False, input="{").stderr
        assert "list" in plans("set", "x", "-", ok=False, input="{}").stderr
        assert "once" in plans("set", "x", "-", ok=False, input=twice).stderr
        assert plans("list", "--json") == []


class TestOverrideCommands:
    def test_make_change_list_and_delete(self, run):
        create_preset(limits={}, beta=False)
        tenant = create_tenant()

        first = run(
            "override", tenant.slug, "limits", '{"a": 1}', "--expires-at", "2999-01-01", "--json"
        )
        run("override", tenant.slug, "limits", "null")
        listed = run("overrides", "--tenant", tenant.slug, "--json")
        effective = {flag["key"]: flag for flag in run("list", tenant.slug, "--json")}
        run("delete-override", listed[0]["id"], "--yes")

        assert first["flag_value"] == {"a": 1}
        assert [one["flag_value"] for one in listed] == [None]
        assert effective["limits"]["source"] == "override"
        assert effective["limits"]["expires_at"] is None
        assert run("overrides", "--json") == []

    def test_refuse_a_value_of_another_type(self, run):
        create_limits("free", limit_flag("projects", 10), preset_flag("beta", False))
        tenant = create_tenant()

        boolean = run("override", tenant.slug, "beta", '"yes"', ok=False)
        limit = run("override", tenant.slug, "projects", -2, ok=False)
        unlimited = run("override", tenant.slug, "projects", -1, "--json")

        assert "Error: JSON: beta is a boolean: true or false." in boolean.stderr
        assert "Error: JSON: projects is a limit: an integer from 0 to" in limit.stderr
        assert unlimited["flag_value"] == -1
