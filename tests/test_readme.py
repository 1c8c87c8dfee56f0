"""The README's tables equal the OpenAPI document and the settings."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path

from app.config import SETTINGS

README = (Path(__file__).parent.parent / "README.md").read_text()


def endpoint_rows(document: dict) -> list[str]:
    """One table row for each operation, in the document's order."""
    return [
        f"| {method.upper()} | `{path}` | {_permission(operation)} | {operation['summary'].rstrip('.')} |"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    ]


def setting_rows() -> list[str]:
    """One table row for each environment variable."""
    return [
        f"| `{name}` | {_default(setting)} | {setting.metadata['help']} |"
        for name, setting in SETTINGS.items()
    ]


class TestTables:
    def test_every_endpoint_is_listed_with_its_permission(self, app):
        document = app.test_client().get("/openapi.json").get_json()

        missing = [row for row in endpoint_rows(document) if row not in README]

        assert missing == []

    def test_no_other_endpoint_is_listed(self, app):
        document = app.test_client().get("/openapi.json").get_json()

        listed = [
            line
            for line in README.splitlines()
            if line.startswith(("| GET", "| POST", "| PUT", "| PATCH", "| DELETE"))
        ]

        assert listed == endpoint_rows(document)

    def test_every_setting_is_listed_with_its_default(self):
        assert [row for row in setting_rows() if row not in README] == []


def _permission(operation: dict) -> str:
    return f"`{operation['x-permission']}`" if "x-permission" in operation else "public"


def _default(setting: Field) -> str:
    """What the table's column says: the default, or that the variable is required."""
    required = setting.metadata["required"]
    return f"**{required}**" if required else _shown(setting.default)


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return f"`{','.join(default)}`" if default else ""
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return f"`{default}`" if isinstance(default, int | float | str) and default != "" else ""
