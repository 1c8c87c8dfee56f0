"""docs/reference/configuration.md: every setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field

from app.dev.reference.markdown import page

INTRODUCTION = """\
The service reads its settings from the environment and checks them at start. One message lists all errors. Defaults are in brackets. Without `DATABASE_URL` it uses the private PostgreSQL and Redis and the development keys under `INSTANCE_DIR`.

`PORT` (8000) is gunicorn's: where it is set, the server listens on all addresses (`0.0.0.0`). Then let only the proxy reach the port, because with `TRUSTED_PROXIES` any client that reaches it can choose its address. `PROMETHEUS_MULTIPROC_DIR` (a temporary folder) is a variable of the metrics library. `WEB_CONCURRENCY` has no effect: use `WEB_PROCESSES`. [Rate limits](../operations/running.md#rate-limits) describes the form of `RATELIMIT_…`."""


def render(settings: Mapping[str, Field[object]]) -> str:
    """The page, with the settings in the order of the code."""
    lines = [
        f"- `{name}`{default_of(setting)}: {setting.metadata['help']}"
        for name, setting in settings.items()
    ]
    return page("Configuration", INTRODUCTION, "\n".join(lines))


def default_of(setting: Field[object]) -> str:
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
