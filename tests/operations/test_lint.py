"""The OpenAPI document by redocly's recommended rules, with the exceptions of `redocly.yaml`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.npm import install_packages

PACKAGES = Path(__file__).parents[1]
SETTINGS = PACKAGES.parent / "redocly.yaml"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


class TestRedocly:
    @pytest.fixture
    def lint(self, request, tmp_path):
        """The problems of a document."""
        node, packages = install_packages(PACKAGES, request.config.cache)
        shutil.copy(SETTINGS, tmp_path)

        def lint(document: dict) -> list[str]:
            (tmp_path / "openapi.json").write_text(json.dumps(document))
            program = packages / "node_modules" / ".bin" / "redocly"
            done = subprocess.run(
                [node, program, "lint", "openapi.json", "--format=json"],
                cwd=tmp_path,
                env={**os.environ, **QUIET},
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert done.stdout, done.stderr
            found = json.loads(done.stdout)["problems"]
            return [
                f"{one['ruleId']} {one['location'][0]['pointer']}: {one['message']}"
                for one in found
            ]

        return lint

    def test_finds_nothing(self, client, lint):
        assert lint(client.get("/openapi.json").get_json()) == []
