"""``splunk``: the HTTP Event Collector (HEC), without indexer acknowledgement."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from app.core import json_text
from app.core.json_text import Json
from app.core.validation.fields import Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import MEBIBYTE, Batch, Kind, Limits, Secret, check, post
from app.webhooks.endpoints.schemas import MAX_URL, Url

REFUSALS = {
    "1": "Splunk has disabled the token.",
    "3": "This is not the form of a token.",
    "4": "Splunk does not know the token.",
    "7": "There is no such index, or the token may not write to it.",
    "10": "The token needs indexer acknowledgement; switch it off at Splunk.",
}
"""The codes in Splunk's answers after which another attempt is useless."""


class SplunkConfigSchema(Schema):
    """A collector."""

    url = Url(required=True, max_length=MAX_URL, description="Its address, without a path.")
    token = Secret(required=True, description="The token of the collector.")
    index = Str(max_length=80, load_default="", description="By default the token's own.")


def deliver(batch: Batch, config: Mapping[str, Json], secrets: Mapping[str, Json]) -> None:
    common = {"source": "controlplane", "sourcetype": "_json"}
    if config["index"]:
        common["index"] = config["index"]
    found = [
        {**common, "time": one.created_at.timestamp(), "event": orjson.Fragment(one.line)}
        for one in batch.records
    ]
    url = f"{config['url'].rstrip('/')}/services/collector/event"
    headers = {"Authorization": f"Splunk {secrets['token']}"}
    answer, said = post(url, b"".join(map(json_text.dumps, found)), headers)
    refusals = {404: "There is no HTTP Event Collector at this address."}
    if reason := REFUSALS.get(str(said.get("code"))):
        refusals[answer.status] = reason
    check(answer, "token", refusals)


SECRETS, LIMITS = frozenset({"token"}), Limits(size=MEBIBYTE)
SPLUNK = Kind(schema=SplunkConfigSchema, secrets=SECRETS, deliver=deliver, limits=LIMITS)
