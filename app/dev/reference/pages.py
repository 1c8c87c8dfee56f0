"""The pages of docs/reference: what they say first, and the lists that the code has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field
from itertools import groupby
from pathlib import Path

from flask import Flask

from app.cli import COMMANDS
from app.config import SETTINGS
from app.core.json_text import Json
from app.dev.commands import COMMANDS as DEVELOPMENT_COMMANDS
from app.dev.reference import commands
from app.events.catalogue import CATALOGUE
from app.events.ocsf import class_of
from app.surfaces.commands.names import ABBREVIATIONS, GROUPS, spellings
from app.surfaces.operations import Operation, operations_of

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
CONFIGURATION = """\
The service reads its settings from the environment and checks them at start. Defaults are in brackets. Without `DATABASE_URL` it uses the private PostgreSQL and Redis and the development keys under `INSTANCE_DIR`.

`PORT` (8000) is gunicorn's: where it is set, the server listens on all addresses (`0.0.0.0`). Then let only the proxy reach the port, because with `TRUSTED_PROXIES` any client that reaches it can choose its address. `PROMETHEUS_MULTIPROC_DIR` (a temporary folder) is a variable of the metrics library. `WEB_CONCURRENCY` has no effect: use `WEB_PROCESSES`. [Rate limits](../operations/running.md#rate-limits) describes the form of `RATELIMIT_…`."""
ENDPOINTS = """\
The running service documents each endpoint at `/docs`, with its parameters, bodies, examples and the names that `include=` takes. `/openapi.json` is the OpenAPI 3.1 document. [Requests and answers](../concepts/requests.md) has what all endpoints share, [Credentials](../concepts/credentials.md) explains the permissions. [SCIM](../guides/scim.md) has its own endpoints below `/scim/v2`."""
ERRORS = """\
The body of an error is `{"detail": "sentence"}`. Where the status alone is ambiguous, it also has a `code` for programs. Codes never change; sentences may. `/docs` lists the codes of each operation. A 422 has [a list of errors](../concepts/requests.md#errors) instead. [Repeated requests](../concepts/requests.md#repeated-requests) says how to repeat one, also after the 429 of a rate limit, which has no code. OFREP's endpoints have OFREP's own errors (`errorCode` and `errorDetails`), and SCIM's endpoints have [SCIM's](../guides/scim.md#protocol)."""
EVENT_TYPES = """\
[Events](../concepts/events.md) describes the feed, and [Webhook endpoints](../guides/webhook-endpoints.md) the delivery to a URL. The OpenAPI document has an example of each type, under `webhooks`. In brackets are the schema of `data`, and OCSF's class and activity. The types `plan.*` and `email.*` are only for the platform."""


def render_all(app: Flask) -> dict[str, str]:
    """The text of each generated page by its file name in :data:`FOLDER`."""
    document = app.test_client().get("/openapi.json").get_json()
    event_types = [
        f"- `{name}` (`{kind.shape.__name__.removesuffix('Schema')}`, {'-'.join(map(str, class_of(name)))}): {kind.summary}"
        for name, kind in sorted(CATALOGUE.items())
    ]
    pages = {
        "commands.md": ("Commands", *commands.parts(app, (*COMMANDS, *DEVELOPMENT_COMMANDS))),
        "configuration.md": ("Configuration", CONFIGURATION, _settings(SETTINGS)),
        "endpoints.md": ("Endpoints", ENDPOINTS, *_by_tag(operations_of(document))),
        "errors.md": ("Error codes", ERRORS, *_by_status(document)),
        "event-types.md": ("Event types", EVENT_TYPES, "\n".join(event_types)),
    }
    return {
        name: "\n\n".join([f"# {title}", *parts]) + "\n" for name, (title, *parts) in pages.items()
    }


def _settings(settings: Mapping[str, Field[object]]) -> str:
    return "\n".join(
        f"- `{name}`{_default(setting)}: {setting.metadata['help']}"
        for name, setting in settings.items()
    )


def _default(setting: Field[object]) -> str:
    """The default in brackets, or that the variable is required."""
    required, default = setting.metadata["required"], setting.default
    if required:
        return f" (**{required}**)"
    match default:
        case tuple():
            text = ",".join(default)
        case bool():
            text = str(int(default))
        case int() | float() | str():
            text = str(default)
        case _:
            text = ""
    return f" (`{text}`)" if text else ""


def _by_tag(operations: Sequence[Operation]) -> list[str]:
    """A heading and a list for each tag, in the document's order."""
    found: dict[str, list[str]] = {}
    for one in operations:
        found.setdefault(one.group, []).append(_endpoint(one))
    parts: list[str] = []
    for tag, lines in found.items():
        first, *others = tag.split("_")
        title = " ".join([ABBREVIATIONS.get(first, first.capitalize()), *others])
        parts += [f"## {title}", "\n".join(lines)]
    return parts


def _endpoint(operation: Operation) -> str:
    """Method and path, permission, the first clause of the summary, and the commands."""
    permission = f"`{operation.permission}`" if operation.permission else "public"
    line = f"- `{operation.method.upper()} {operation.path}` ({permission}) {operation.clause}"
    commands = " or ".join(
        f"`flask {' '.join(one.words)}`" for one in spellings(operation) if one.words[0] in GROUPS
    )
    return f"{line}: {commands}" if commands else line


def _by_status(document: dict[str, Json]) -> list[str]:
    """A heading and a list of error codes for each status."""
    found = {
        code
        for operations in document["paths"].values()
        for method, operation in operations.items()
        if method != "parameters"
        for code in _codes(operation)
    }
    parts: list[str] = []
    for status, listed in groupby(sorted(found), key=lambda one: one[0]):
        lines = [
            f"- {', '.join(f'`{code}`' for _, code, _ in same)}: {detail}"
            for detail, same in groupby(listed, key=lambda one: one[2])
        ]
        parts += [f"## {status}", "\n".join(lines)]
    return parts


def _codes(operation: dict[str, Json]) -> list[tuple[str, str, str]]:
    """Status, code and sentence of each error with a code that an operation can answer."""
    found = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json", {})
        listed = content.get("schema", {}).get("properties", {}).get("code", {}).get("enum", ())
        found += [(status, code, content["examples"][code]["value"]["detail"]) for code in listed]
    return found
