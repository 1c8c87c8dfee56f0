"""Fields of forms: what an input shows, and what is read of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from werkzeug.datastructures import MultiDict

from app.core.json_text import Json

MISSING = object()
DRAFT = "form_draft"  # the name of buttons that change what inputs show, and save nothing

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # the commas of 1,000,000
SEVERAL = ("checks", "grid")
Choices = Sequence[tuple[str, str]]
Sent = MultiDict[str, str]
Inputs = dict[str, list[str]]  # texts by the names of inputs


@dataclass(frozen=True)
class Field:
    """One input. ``kind`` is a type of <input>, or textarea, select, checks, boolean, json, or grid:
    checks in rows, each of the choices with one label."""

    name: str
    label: str
    kind: str = "text"
    help: str = ""
    choices: Choices | Callable[[], Choices] = ()  # a function is called where they are shown
    is_required: bool = False
    is_nullable: bool = False  # an empty input is null, otherwise an empty text

    def read(self, form: Sent) -> Json:
        """The value for the API; raises ValueError for text that cannot be read as the kind."""
        if self.kind in SEVERAL:
            return form.getlist(self.name)
        if self.kind == "boolean":
            return self.name in form
        text = form.get(self.name, "")
        text = text.replace("\r\n", "\n") if self.kind in ("textarea", "json") else text.strip()
        if text == "":
            return self._empty()
        match self.kind:
            case "integer":
                return _number(THOUSANDS.sub("", text), int)
            case "number":
                return _number(text, float)
            case "datetime-local":
                return text if text.endswith(("Z", "+00:00")) else f"{text}Z"
            case "json":
                try:
                    return json.loads(text)
                except (ValueError, RecursionError) as fault:
                    raise ValueError(f"This is not JSON: {fault}") from None
        return text

    def options(self) -> Choices:
        """The choices to show."""
        return self.choices() if callable(self.choices) else self.choices

    def is_unchanged(self, form: Sent, before: Inputs) -> bool:
        """Whether the inputs were sent as they were shown."""
        return self.inputs(self.typed(form)).items() <= before.items()

    def inputs(self, shown: Json) -> Inputs:
        """The inputs by their names, as a browser sends them where ``shown`` is not changed."""
        if self.kind == "boolean":
            return {self.name: ["on"] if shown else []}
        texts = shown if self.kind in SEVERAL else [shown]
        return {self.name: [str(text).replace("\r\n", "\n").strip() for text in texts]}

    def typed(self, form: Sent) -> Json:
        """The typed texts, which the inputs show again if the API or the form refuses them."""
        return form.getlist(self.name) if self.kind in SEVERAL else form.get(self.name, "")

    def place(self, loc: Sequence[str]) -> str:
        """Where in the value an error is."""
        return ".".join(loc)

    def _empty(self) -> Json:
        if self.is_nullable:
            return None
        return (
            MISSING if self.kind in ("integer", "number", "json", "datetime-local", "date") else ""
        )

    def shown(self, value: Json) -> Json:
        """The value as the input takes it."""
        if value is None or value is MISSING:
            return [] if self.kind in SEVERAL else ""
        if self.kind == "json":
            return json.dumps(value, ensure_ascii=False, indent=2)
        if self.kind == "datetime-local" and isinstance(value, str):
            return _local(value)
        return value


class BooleanField(Field):
    """A menu of two choices, true and false, whose value is a JSON boolean."""

    def read(self, form: Sent) -> Json:
        """The boolean; without a choice None, or a ValueError where one is required."""
        chosen = {"true": True, "false": False}.get(form.get(self.name, ""))
        if chosen is None and self.is_required:
            raise ValueError("Choose a value.")
        return chosen

    def shown(self, value: Json) -> Json:
        return {True: "true", False: "false"}.get(value, "")


class Lines(Field):
    """A list of texts, one on each line."""

    def read(self, form: Sent) -> Json:
        """The lines that are not empty; None for no lines of a nullable field."""
        lines = [line.strip() for line in form.get(self.name, "").splitlines()]
        return [line for line in lines if line] or (None if self.is_nullable else [])

    def shown(self, value: Json) -> Json:
        """One text on each line."""
        return "\n".join(value or ())

    def place(self, loc: Sequence[str]) -> str:
        return f"line {int(loc[0]) + 1}"


def inputs_of(fields: Sequence[Field], values: Mapping[str, Json]) -> Inputs:
    """The inputs of fields that show these values."""
    found: Inputs = {}
    for one in fields:
        found |= one.inputs(one.shown(values.get(one.name)))
    return found


def moment_field(name: str, label: str, empty: str) -> Field:
    """A moment that may be left out; ``empty`` says what that means."""
    help = f"In UTC. Empty: {empty}."
    return Field(name, label, "datetime-local", help=help, is_nullable=True)


def choices(*names: str) -> Choices:
    """Choices that are shown as they are sent."""
    return [(name, name.replace("_", " ")) for name in names]


def _number(text: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError("This is not a number.") from None


def _local(text: str) -> str:
    """A moment as the input takes it, in UTC."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError):
        return text
