"""The OpenAPI document by redocly's recommended rules."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.npm import install_packages

PACKAGES = Path(__file__).parents[1]
SETTINGS = """
extends: [recommended-strict]
rules:
  info-license: off  # the service is not published under one
  no-ambiguous-paths: off  # /v1/billing/flags/{key}/explain and …/overrides/{override_id}
  no-invalid-media-type-examples:
    severity: error
    allowAdditionalProperties: true  # those beside a $ref are not read; test_openapi.py does
  operation-4xx-response: off  # /healthz and /readyz have none
"""
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


class TestRedocly:
    @pytest.fixture
    def lint(self, request, tmp_path):
        """The problems of a document."""
        node, packages = install_packages(PACKAGES, request.config.cache)
        (tmp_path / "redocly.yaml").write_text(SETTINGS)

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
                if one["severity"] == "error"
            ]

        return lint

    def test_finds_no_error(self, client, lint):
        assert lint(client.get("/openapi.json").get_json()) == []
