"""``datadog``: the intake of logs, version 2."""

from __future__ import annotations

from collections.abc import Mapping

from app.core import json_text
from app.core.json_text import Json
from app.core.validation.fields import Literal, Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import MEBIBYTE, Batch, Kind, Limits, Secret, check, post
from app.webhooks.endpoints.schemas import MAX_URL, Url

SITES = (
    *("datadoghq.com", "us3.datadoghq.com", "us5.datadoghq.com", "datadoghq.eu"),
    *("ap1.datadoghq.com", "ap2.datadoghq.com", "ddog-gov.com"),
)
REFUSED = "Datadog refuses the API key; it must be an active one of an account at this site."


class DatadogConfigSchema(Schema):
    """An account."""

    site = Literal(*SITES, load_default=SITES[0], description="Where the account is.")
    api_key = Secret(required=True, description="An API key of the account.")
    tags = Str(max_length=500, load_default="", description="Such as env:prod,team:security.")
    url = Url(max_length=MAX_URL, load_default="", description="Your own forwarder, if any.")


def deliver(batch: Batch, config: Mapping[str, Json], secrets: Mapping[str, Json]) -> None:
    common = {"ddsource": "controlplane", "service": "controlplane", "ddtags": config["tags"]}
    entries = [{**common, "message": one.line.decode()} for one in batch.records]
    host = config["url"].rstrip("/") or f"https://http-intake.logs.{config['site']}"
    headers = {"DD-API-KEY": secrets["api_key"]}
    answer, _ = post(f"{host}/api/v2/logs", json_text.dumps(entries), headers)
    check(answer, "API key", {401: REFUSED, 403: REFUSED})


SECRETS, LIMITS = frozenset({"api_key"}), Limits(size=2 * MEBIBYTE, records=1_000)
DATADOG = Kind(schema=DatadogConfigSchema, secrets=SECRETS, deliver=deliver, limits=LIMITS)
