"""What the tests of events share."""

from typing import Any

from jsonschema import Draft202012Validator


def read(api: Any, token: str, **query: Any) -> dict[str, Any]:
    """The answer of the feed, after all events have got their positions."""
    api.sequence()
    answer = api.get("/v1/events", token=token, query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def faults(document: dict[str, Any], event: dict[str, Any]) -> list[str]:
    """What of an event is not as the OpenAPI document describes its type."""
    content = document["webhooks"][event["type"]]["post"]["requestBody"]["content"]
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    return [fault.message for fault in Draft202012Validator(schema).iter_errors(event)]
