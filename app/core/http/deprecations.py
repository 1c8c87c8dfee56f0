"""The operations and parameters that are to go; CHANGELOG.md lists them under "Deprecated".

Answers that use one have ``Deprecation`` (RFC 9745) and ``Sunset`` (RFC 8594). The OpenAPI document
marks it ``deprecated``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from flask import Response
from werkzeug.http import http_date


class Deprecation(NamedTuple):
    since: datetime
    until: datetime  # it works until then


Deprecations = Mapping[str, Deprecation]
DEPRECATED: Deprecations = {}
"""``operation_id`` or ``operation_id?parameter`` -> when it was deprecated, and when it ends."""


def add_headers(
    response: Response, operation: str, sent: Iterable[str], table: Deprecations = DEPRECATED
) -> None:
    """Add the headers of the operation, else of the first deprecated one of the ``sent`` parameters."""
    for name in (operation, *(f"{operation}?{parameter}" for parameter in sent)):
        if name in table:
            response.headers["Deprecation"] = f"@{table[name].since.timestamp():.0f}"
            response.headers["Sunset"] = http_date(table[name].until)
            return


def mark(paths: Mapping[str, Mapping[str, Any]], table: Deprecations = DEPRECATED) -> None:
    """Mark the deprecated operations and parameters among ``paths`` of an OpenAPI document."""
    for operations in paths.values():
        for operation in (one for one in operations.values() if "operationId" in one):
            name = operation["operationId"]
            for part in operation.get("parameters", ()):
                if f"{name}?{part.get('name')}" in table:
                    part["deprecated"] = True
            if name in table:
                operation["deprecated"] = True
