"""``azure_monitor``: the Logs Ingestion API of Azure Monitor, which Microsoft Sentinel reads too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlencode

import orjson

from app.core import json_text
from app.core.json_text import Json
from app.core.validation.fields import Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import Batch, Kind, Limits, Secret, check, post
from app.webhooks.endpoints.schemas import MAX_URL, Url

LOGIN = "https://login.microsoftonline.com"
GOVERNMENT = "https://login.microsoftonline.us"
REUSED = 300  # seconds for which an access token is reused; it is valid for at least ten minutes
PART = "^[A-Za-z0-9._-]{1,100}$"  # of a path
NO_ROLE = "The application needs the role Monitoring Metrics Publisher on the rule."


class AzureMonitorConfigSchema(Schema):
    """A data collection rule, and the application that writes with it."""

    endpoint = Url(required=True, max_length=MAX_URL, description="Of the logs ingestion.")
    rule_id = Str(required=True, pattern=PART, description="The rule's immutable id, dcr-….")
    stream = Str(required=True, pattern=PART, description="A stream of the rule, Custom-….")
    directory_id = Str(required=True, pattern=PART, description="Of the Entra tenant.")
    client_id = Str(required=True, pattern=PART, description="The application's id.")
    client_secret = Secret(required=True, description="A secret of the application.")
    login = Url(max_length=MAX_URL, load_default=LOGIN, description="Differs in other clouds.")


def deliver(batch: Batch, config: Mapping[str, Json]) -> None:
    rows = [
        {"TimeGenerated": one.created_at, "EventType": one.type, "Event": orjson.Fragment(one.line)}
        for one in batch.records
    ]
    period = time.monotonic() // REUSED
    names = (config[name] for name in ("directory_id", "client_id", "client_secret"))
    token = _access_token(config["login"].rstrip("/"), *names, period)
    path = f"dataCollectionRules/{config['rule_id']}/streams/{config['stream']}"
    url = f"{config['endpoint'].rstrip('/')}/{path}?api-version=2023-01-01"
    answer, said = post(url, json_text.dumps(rows), {"Authorization": f"Bearer {token}"})
    fault = said.get("error")
    message = fault.get("message") if isinstance(fault, dict) else fault
    refused = f"Azure refuses the rule or the stream: {message}"
    check(answer, "access token", {400: refused, 403: NO_ROLE, 404: refused})


@lru_cache(maxsize=256)
def _access_token(login: str, directory: str, client_id: str, secret: str, _: float) -> Json:
    """An access token of the application; raises Failed."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": secret,
        "scope": f"https://monitor.azure.{'us' if login == GOVERNMENT else 'com'}//.default",
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    url = f"{login}/{directory}/oauth2/v2.0/token"
    answer, said = post(url, urlencode(form).encode(), headers)
    reason = str(said.get("error_description")).partition("Trace ID")[0].strip()
    refused = f"Entra gives the application no access token: {reason}"
    check(answer, "application", dict.fromkeys((400, 401), refused))
    return said.get("access_token")


AZURE_MONITOR = Kind(
    schema=AzureMonitorConfigSchema,
    secrets={"client_secret"},
    deliver=deliver,
    limits=Limits(size=700 * 1024),  # of 1 MiB, as each row has more than the record
)
