"""``https``: POST newline-delimited JSON to a URL."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.json_text import Json
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import Batch, Kind, check, send
from app.webhooks.endpoints.schemas import ADDRESS, MAX_URL, Headers, Url


class HttpsConfigSchema(Schema):
    """Where batches are posted."""

    examples = {
        "url": "https://logs.example.com/ingest",
        "headers": {"Authorization": "Bearer 7f2c"},
    }

    url = Url(required=True, min_length=1, max_length=MAX_URL, metadata=ADDRESS)
    headers = Headers(load_default=dict, description="Sent with each batch; secret.")


def deliver(batch: Batch, config: Mapping[str, Json], secrets: Mapping[str, Json]) -> None:
    headers = {**secrets["headers"], "Content-Type": "application/x-ndjson"}
    check(send("POST", config["url"], batch.ndjson(), headers), "headers")


HTTPS = Kind(schema=HttpsConfigSchema, secrets=frozenset({"headers"}), deliver=deliver)
