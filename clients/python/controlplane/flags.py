"""A tenant's flags in memory, read again when the service tells that they have changed."""

from __future__ import annotations

from typing import Any

import httpx

from .following import Following


class Flags(Following):
    """The values of all flags by OFREP, whose ``context`` may have a ``tenant_id``.

    The first ones are read at once; ApiError if they are refused. Without the service they stay.
    """

    def __init__(self, url: str, token: str, **context: Any) -> None:
        self._context = context
        self._values: dict[str, Any] = {}
        super().__init__(url, token)

    def get(self, key: str, default: Any = None) -> Any:
        """A flag's value; ``default`` if the plan has no such flag, or its value is null."""
        return self._values.get(key, default)

    def _ask(self, told: str, headers: dict[str, str]) -> httpx.Response:
        return httpx.post(
            f"{self._url}/ofrep/v1/evaluate/flags",
            params={"flagConfigEtag": told},
            json={"context": self._context},
            headers=headers,
        )

    def _load(self, found: Any) -> None:
        self._values = {one["key"]: one["value"] for one in found["flags"] if "value" in one}
        for one in found.get("eventStreams", ()):
            self._stream = one.get("url") or self._url + one["endpoint"]["requestUri"]
