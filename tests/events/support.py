"""What the tests of events share."""

from __future__ import annotations

from typing import Any


def read(api: Any, token: str, **query: Any) -> dict[str, Any]:
    """The answer of the feed, after all events have got their positions."""
    api.sequence()
    answer = api.get("/v1/events", token=token, query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.get_json()
