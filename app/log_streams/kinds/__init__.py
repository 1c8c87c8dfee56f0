"""The kinds of targets."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.errors import Invalid
from app.core.json_text import Json
from app.core.validation.messages import under
from app.log_streams.kinds.azure_monitor import AZURE_MONITOR
from app.log_streams.kinds.collectors import DATADOG, HTTPS, SPLUNK
from app.log_streams.kinds.s3 import S3
from app.log_streams.kinds.slack import SLACK

KINDS = {
    "https": HTTPS,
    "s3": S3,
    "splunk": SPLUNK,
    "datadog": DATADOG,
    "azure_monitor": AZURE_MONITOR,
    "slack": SLACK,
}
"""The name of a kind, as in requests -> the kind."""


def load_config(kind: str, config: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """The valid settings of a stream of this kind, and its secrets; raises Invalid."""
    schema = KINDS[kind].schema()
    try:
        loaded = schema.load(config)
        if found := list(schema.rules(loaded)):
            raise Invalid(*found)
    except Invalid as fault:
        raise Invalid(*under("body", under("config", fault.errors))) from None
    secrets = {name: loaded.pop(name) for name in KINDS[kind].secrets if name in loaded}
    return loaded, secrets
