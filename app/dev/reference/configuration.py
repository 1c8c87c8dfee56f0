"""docs/reference/configuration.md: every setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field

from app.dev.reference.markdown import page, table

INTRODUCTION = """\
The service reads its settings from the environment and checks them at start. One message lists all errors. Production needs the required variables. Only without `DATABASE_URL` the service uses the private PostgreSQL and Redis and the development keys under `INSTANCE_DIR`, for development.

`PORT` (8000) is gunicorn's own variable: where it is set, the server listens on all addresses (`0.0.0.0`), not only on 127.0.0.1. Then let only the proxy reach the port, because with `TRUSTED_PROXIES` whoever reaches it can choose their address. `PROMETHEUS_MULTIPROC_DIR` (a temporary folder) is the metrics library's. gunicorn's `WEB_CONCURRENCY` has no effect: use `WEB_PROCESSES`. [Running](../operations/running.md#rate-limits) has the forms of a rate limit."""


def render(settings: Mapping[str, Field[object]]) -> str:
    """The page, with the settings in the order of the code."""
    rows = [
        (f"`{name}`", default_of(setting), setting.metadata["help"])
        for name, setting in settings.items()
    ]
    return page("Configuration", INTRODUCTION, table(("Variable", "Default", "What"), rows))


def default_of(setting: Field[object]) -> str:
    """The default, or that the variable is required."""
    required, default = setting.metadata["required"], setting.default
    if required:
        return f"**{required}**"
    match default:
        case tuple():
            return f"`{','.join(default)}`" if default else ""
        case bool():
            return f"`{int(default)}`"
        case int() | float() | str():
            return f"`{default}`" if default != "" else ""
        case _:
            return ""
