"""``flask plans apply`` and ``flask plans export``."""

import json

import pytest
import yaml

from app.audit.models import AuditEvent
from app.plans.models import PlanPreset
from tests import database
from tests.factories import create_override, create_preset, create_tenant, limit_flag, preset_flag

GROWTH = {"name": "growth", "display_name": "Growth", "flags": [preset_flag("beta", True)]}


@pytest.fixture
def run(app, tmp_path):
    def invoke(*words, plans=None):
        path = tmp_path / "plans.yaml"
        if plans is not None:
            text = plans if isinstance(plans, str | bytes) else yaml.safe_dump({"plans": plans})
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            words = (*words, str(path))
        return app.test_cli_runner().invoke(args=["plans", *words])

    return invoke


def presets():
    return {preset.name: preset for preset in database.rows(PlanPreset)}


class TestApply:
    def test_creates_and_changes_by_name_and_leaves_others(self, run):
        known = create_preset("growth", beta=False, old=1)
        other = create_preset("other")
        scale = {"name": "scale", "flags": [limit_flag()]}

        ended = run("apply", "--json", plans=[scale, GROWTH])

        assert ended.exit_code == 0, ended.output
        stored = presets()
        assert stored["other"] == other
        assert stored["growth"].id == known.id
        assert (stored["growth"].display_name, stored["growth"].flags) == (
            "Growth",
            GROWTH["flags"],
        )
        assert stored["scale"].flags == [limit_flag()]
        assert [(one["plan"], one["item"]) for one in json.loads(ended.stdout)] == [
            ("growth", "display_name"),
            ("growth", "flag beta"),
            ("growth", "flag old"),
            ("scale", "preset"),
            ("scale", "flag calls"),
        ]

    def test_a_dry_run_shows_the_same_and_changes_nothing(self, run):
        create_preset("growth", beta=False)
        before = presets()

        dry = run("apply", "--dry-run", "--json", plans=[GROWTH])

        assert presets() == before
        assert database.rows(AuditEvent) == []
        assert dry.stdout == run("apply", "--json", plans=[GROWTH]).stdout

    def test_applies_nothing_where_one_is_refused(self, run):
        preset = create_preset("scale", beta=True)
        create_override(create_tenant(), preset, "beta", False)
        plans = [GROWTH, {"name": "scale", "flags": []}]

        for words in (("apply",), ("apply", "--dry-run")):
            ended = run(*words, plans=plans)

            assert ended.exit_code == 1
            assert "Overrides use flags that would be removed: beta (1)." in ended.stderr
            assert set(presets()) == {"scale"}
        assert run("apply", "--force", plans=plans).exit_code == 0
        assert presets()["scale"].flags == []

    def test_keeps_locks_that_the_file_does_not_name(self, run):
        create_preset("growth", beta=False)
        flags = [
            {"flag_key": key, "flag_type": "boolean", "default_value": True}
            for key in ("beta", "new")
        ]

        run("apply", plans=[{"name": "growth", "flags": flags}])

        assert [flag["is_locked"] for flag in presets()["growth"].flags] == [False, True]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("[", "This is not YAML"),
            ("plans: 2026-01-01", "put dates in quotes"),
            ("plans: .nan", "This is not YAML"),
            ("- growth", "Input should be a valid dictionary"),
            ("{}", "plans: Field required"),
            ("plans: [growth]", "plans.0: Input should be a valid dictionary"),
            ("plans: [{name: x, flag: []}]", "plans.x.flag: there is no such field"),
            ("plans: [{name: x}, {name: x}]", "plans: a plan is in the file twice"),
            ("plans: [{name: !!python/name:os.system x}]", "This is not YAML"),
            ("plans: [{name: x, flags: [{}]}]", "plans.x.flags.0.flag_key: Field required"),
            (
                "plans: [{name: x, flags: [{flag_key: b, flag_type: boolean, default_value: 1}]}]",
                "plans.x.flags.b.default_value: Input should be a valid boolean",
            ),
            (b"\xff plans", "This is not YAML"),
        ],
    )
    def test_says_what_is_wrong_with_the_file(self, run, text, told):
        ended = run("apply", plans=text)

        assert ended.exit_code == 2
        assert told in ended.stderr

    def test_takes_aliases(self, run):
        text = """
        plans:
          - {name: one, flags: &flags [{flag_key: beta, flag_type: boolean, default_value: true}]}
          - {name: two, flags: *flags}
        """

        assert run("apply", plans=text).exit_code == 0
        assert presets()["one"].flags == presets()["two"].flags != []


class TestExport:
    def test_prints_what_can_be_applied(self, run):
        create_preset("größe", beta=True, ratio=5.0, tree={"a": [1, None, "no"]})
        run("apply", plans=[GROWTH, {"name": "scale", "flags": [limit_flag()]}])
        before = presets()

        exported = run("export").stdout
        again = run("apply", plans=exported)

        assert "größe" in exported
        assert "No difference." in again.stderr
        assert presets() == before
        assert yaml.safe_load(exported) == json.loads(run("export", "--json").stdout)

    def test_prints_all_pages(self, run):
        for number in range(101):
            create_preset(f"plan-{number:03}")

        names = [plan["name"] for plan in yaml.safe_load(run("export").stdout)["plans"]]

        assert names == [f"plan-{number:03}" for number in range(101)]
