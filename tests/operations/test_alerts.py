"""The Prometheus rules and the Grafana dashboard of the documents."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import platform_token
from tests.running import documented
from tests.running.serving import program

RULES = yaml.safe_load(documented.file("prometheus-rules.yml"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
DASHBOARD = json.loads(documented.file("grafana-dashboard.json"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OF_THE_PROCESS = ("python_", "process_")
ABOUT_ALL = {"MetricsMissing"}  # it is about no single metric


def promtool(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [program("promtool", "prometheus"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def documented_metrics() -> dict[str, set[str]]:
    """Metric -> the alerts on it, of the table of the documents."""
    rows = re.findall(
        r"^\| (`.+`) \| .+ \|(.*)\|$",
        documented.section("observability.md", "Metrics"),
        flags=re.MULTILINE,
    )
    return {
        metric: set(re.findall(r"`(\w+)`", alerts))
        for metrics, alerts in rows
        for metric in re.findall(r"`(\w+)`", metrics)
    }


def metrics_of(expression: str) -> set[str]:
    """The documented metrics in an expression."""
    words = {word.removesuffix("_bucket") for word in re.findall(r"\w+", expression)}
    return words & set(documented_metrics())


def test_every_metric_is_documented(api):
    api.get("/v1/tenants", token=platform_token())

    families = text_string_to_metric_families(api.get("/metrics").text)

    served = {re.sub("_(total|created)$", "", family.name) for family in families}
    described = {name.removesuffix("_total") for name in documented_metrics()}
    assert "http_requests" in served
    assert {name for name in served - described if not name.startswith(OF_THE_PROCESS)} == set()


class TestRules:
    def test_are_those_that_the_metrics_name(self):
        assert set().union(*documented_metrics().values()) == set(ALERTS) - ABOUT_ALL

    @pytest.mark.parametrize("name", sorted(set(ALERTS) - ABOUT_ALL))
    def test_ask_for_the_metrics_that_name_them(self, name):
        metrics = metrics_of(ALERTS[name]["expr"])

        assert metrics
        assert all(name in documented_metrics()[metric] for metric in metrics)

    def test_are_read_by_prometheus_and_fire(self, tmp_path):
        (tmp_path / "prometheus-rules.yml").write_text(documented.file("prometheus-rules.yml"))
        shutil.copy(Path(__file__).with_name("rules_test.yml"), tmp_path)

        checked = promtool("check", "rules", "prometheus-rules.yml", folder=tmp_path)
        tested = promtool("test", "rules", "rules_test.yml", folder=tmp_path)

        assert checked.returncode == 0, checked.stderr
        assert tested.returncode == 0, tested.stdout + tested.stderr


class TestDashboard:
    def test_shows_every_metric(self):
        shown = [metrics_of(target["expr"]) for panel in PANELS for target in panel["targets"]]

        assert all(len(metrics) == 1 for metrics in shown)
        assert set().union(*shown) == set(documented_metrics()) - {"process_last_seen"}

    def test_has_panels_that_do_not_overlap(self):
        cells = [
            (x, y)
            for panel in DASHBOARD["panels"]
            for place in [panel["gridPos"]]
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]

        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
        assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])

    def test_has_expressions_that_prometheus_reads(self, tmp_path):
        rules = [
            {
                "record": f"shown_{panel['id']}_{target['refId']}",
                "expr": target["expr"].replace("$__rate_interval", "1m"),
            }
            for panel in PANELS
            for target in panel["targets"]
        ]
        document = {"groups": [{"name": "shown", "rules": rules}]}
        (tmp_path / "rules.yml").write_text(yaml.safe_dump(document))

        checked = promtool("check", "rules", "rules.yml", folder=tmp_path)

        assert f"{len(rules)} rules found" in checked.stdout
        assert checked.returncode == 0, checked.stderr
