"""``slack``: messages by an incoming webhook; a digest where there are many events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from string import Template

from app.core import json_text
from app.core.json_text import Json
from app.core.validation.fields import Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import Batch, Kind, Limits, Record, check, post
from app.webhooks.endpoints.schemas import MAX_URL, Url

MOST_LINES, MOST_TYPES = 10, 20  # of a message, and of a digest
MAX_LINE = 500
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class SlackConfigSchema(Schema):
    """A channel."""

    url = Url(required=True, max_length=MAX_URL, description="The webhook's address, a secret.")
    template = Str(
        max_length=MAX_LINE,
        load_default="$type by $actor",
        description="A line, with members of the record: $type, $actor, $data.email.",
    )


class Line(Template):
    """A template whose names are paths into a record."""

    idpattern = "[a-z_]+(?:[.][a-z_]+)*"


def deliver(batch: Batch, config: Mapping[str, Json]) -> None:
    if len(batch.records) > MOST_LINES:
        counts = Counter(one.type for one in batch.records).most_common(MOST_TYPES)
        listed = ", ".join(f"{count} {name}" for name, count in counts)
        text = f"{len(batch.records)} events: {listed}"
    else:
        text = "\n".join(_line(config["template"], one) for one in batch.records)
    answer, _ = post(config["url"], json_text.dumps({"text": text}), {})
    reason = f"Slack refuses the webhook or its channel: {answer.body.decode(errors='replace')}"
    check(answer, "webhook", dict.fromkeys((400, 403, 404, 410), reason))


def _line(template: str, record: Record) -> str:
    """The line of a record; members that it does not have are empty."""
    line, document = Line(template), json_text.loads(record.line.decode())
    members = {path: _member(document, path) for path in line.get_identifiers()}
    return line.safe_substitute(members)[:MAX_LINE].strip() or record.type


def _member(found: Json, path: str) -> str:
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else str(found).translate(ESCAPES)


LIMITS = Limits(records=1_000, seconds=5, pause=1)
SLACK = Kind(schema=SlackConfigSchema, secrets={"url"}, deliver=deliver, limits=LIMITS)
