"""``https``, ``splunk`` and ``datadog``: one POST for each batch, with a credential in a header."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from app.core import json_text
from app.core.json_text import Json
from app.core.validation.fields import Literal, Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import MEBIBYTE, Batch, Kind, Limits, Secret, check, post, send
from app.webhooks.endpoints.schemas import ADDRESS, MAX_URL, Headers, Url

SPLUNK_REFUSALS = {
    "1": "Splunk has disabled the token.",
    "3": "This is not the form of a token.",
    "4": "Splunk does not know the token.",
    "7": "There is no such index, or the token may not write to it.",
    "10": "The token needs indexer acknowledgement; switch it off at Splunk.",
}
"""The codes in Splunk's answers after which another attempt is useless."""
SITES = (
    *("datadoghq.com", "us3.datadoghq.com", "us5.datadoghq.com", "datadoghq.eu"),
    *("ap1.datadoghq.com", "ap2.datadoghq.com", "ddog-gov.com"),
)
DATADOG_REFUSES = (
    "Datadog refuses the API key; it must be an active one of an account at this site."
)


class HttpsConfigSchema(Schema):
    """Where batches are posted as newline-delimited JSON."""

    examples = {
        "url": "https://logs.example.com/ingest",
        "headers": {"Authorization": "Bearer 7f2c"},
    }

    url = Url(required=True, min_length=1, max_length=MAX_URL, metadata=ADDRESS)
    headers = Headers(load_default=dict, description="Sent with each batch; secret.")


class SplunkConfigSchema(Schema):
    """An HTTP Event Collector (HEC), without indexer acknowledgement."""

    url = Url(required=True, max_length=MAX_URL, description="Its address, without a path.")
    token = Secret(required=True, description="The token of the collector.")
    index = Str(max_length=80, load_default="", description="By default the token's own.")


class DatadogConfigSchema(Schema):
    """An account, whose intake of logs is that of version 2."""

    site = Literal(*SITES, load_default=SITES[0], description="Where the account is.")
    api_key = Secret(required=True, description="An API key of the account.")
    tags = Str(max_length=500, load_default="", description="Such as env:prod,team:security.")
    url = Url(max_length=MAX_URL, load_default="", description="Your own forwarder, if any.")


def to_https(batch: Batch, config: Mapping[str, Json]) -> None:
    headers = {**config["headers"], "Content-Type": "application/x-ndjson"}
    check(send("POST", config["url"], batch.ndjson(), headers), "headers")


def to_splunk(batch: Batch, config: Mapping[str, Json]) -> None:
    common = {"source": "controlplane", "sourcetype": "_json"}
    if config["index"]:
        common["index"] = config["index"]
    found = [
        {**common, "time": one.created_at.timestamp(), "event": orjson.Fragment(one.line)}
        for one in batch.records
    ]
    url = f"{config['url'].rstrip('/')}/services/collector/event"
    headers = {"Authorization": f"Splunk {config['token']}"}
    answer, said = post(url, b"".join(map(json_text.dumps, found)), headers)
    refusals = {404: "There is no HTTP Event Collector at this address."}
    if reason := SPLUNK_REFUSALS.get(str(said.get("code"))):
        refusals[answer.status] = reason
    check(answer, "token", refusals)


def to_datadog(batch: Batch, config: Mapping[str, Json]) -> None:
    common = {"ddsource": "controlplane", "service": "controlplane", "ddtags": config["tags"]}
    entries = [{**common, "message": one.line.decode()} for one in batch.records]
    host = config["url"].rstrip("/") or f"https://http-intake.logs.{config['site']}"
    headers = {"DD-API-KEY": config["api_key"]}
    answer, _ = post(f"{host}/api/v2/logs", json_text.dumps(entries), headers)
    check(answer, "API key", dict.fromkeys((401, 403), DATADOG_REFUSES))


HTTPS = Kind(schema=HttpsConfigSchema, secrets={"headers"}, deliver=to_https)
OF_SPLUNK = Limits(size=MEBIBYTE)
SPLUNK = Kind(schema=SplunkConfigSchema, secrets={"token"}, deliver=to_splunk, limits=OF_SPLUNK)
OF_DATADOG = Limits(size=2 * MEBIBYTE, records=1_000)
DATADOG = Kind(
    schema=DatadogConfigSchema, secrets={"api_key"}, deliver=to_datadog, limits=OF_DATADOG
)
