"""Forms: their fields, the values people send, and the API's errors beside the fields.

Each form has a page of its own, which shows it, and sends it to the API when it is posted. ETag and
``If-Match`` show what somebody else has changed since the page was loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from flask import redirect, render_template, request

from app.console.access import set_notice
from app.console.api import Answer, Refused

MISSING = object()
SHOWN_BESIDE_FIELDS = (400, 409, 412, 413, 415, 422)
VERSION = "form_version"  # the names of the form's own inputs
CONFIRMATION = "form_confirmation"
PREVIEW = "form_preview"

Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Field:
    """One input. ``kind`` is a type of <input>, or textarea, select, checks, boolean, json."""

    name: str
    label: str
    kind: str = "text"
    help: str = ""
    choices: Choices = ()
    is_required: bool = False
    is_nullable: bool = False  # an empty input is null, otherwise an empty text

    def read(self, form: Any) -> Any:
        """The value for the API; raises ValueError for text that cannot be read as the kind."""
        if self.kind == "checks":
            return form.getlist(self.name)
        if self.kind == "boolean":
            return self.name in form
        text = form.get(self.name, "")
        text = text.replace("\r\n", "\n") if self.kind in ("textarea", "json") else text.strip()
        if text == "":
            return self._empty()
        match self.kind:
            case "integer":
                return _number(text, int)
            case "number":
                return _number(text, float)
            case "datetime-local":
                return text if text.endswith("Z") else f"{text}Z"
            case "json":
                try:
                    return json.loads(text)
                except (ValueError, RecursionError) as fault:
                    raise ValueError(f"This is no JSON: {fault}") from None
        return text

    def is_unchanged(self, form: Any, value: Any) -> bool:
        """Whether the input was sent as ``value`` is shown."""
        if self.kind == "checks":
            return bool(form.getlist(self.name) == self.shown(value))
        if self.kind == "boolean":
            return (self.name in form) == bool(value)
        text: str = form.get(self.name, "").replace("\r\n", "\n")
        return text.strip() == str(self.shown(value)).strip()

    def _empty(self) -> Any:
        if self.is_nullable:
            return None
        return (
            MISSING if self.kind in ("integer", "number", "json", "datetime-local", "date") else ""
        )

    def shown(self, value: Any) -> Any:
        """The value as the input takes it."""
        if value is None or value is MISSING:
            return [] if self.kind == "checks" else ""
        if self.kind == "json":
            return json.dumps(value, ensure_ascii=False, indent=2)
        if self.kind == "datetime-local" and isinstance(value, str):
            return _local(value)
        return value


@dataclass
class Form:
    """A form and its state."""

    title: str
    fields: Sequence[Field] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""  # the ETag of what is shown
    submit: str = "Save"
    intro: str = ""
    is_dangerous: bool = False
    confirmation: str = ""  # what has to be typed
    back: str = ""  # where Cancel leads
    can_preview: bool = False
    preview: Any = None  # what the change would do, once somebody has asked
    template: str = "console/form.html"
    context: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_stale: bool = False  # somebody else has changed what the form is about

    def run(
        self,
        send: Callable[[dict[str, Any], str], Answer],
        *,
        done: str | Callable[[Answer], str],
        to: str | Callable[[Answer], str],
        changed_only: bool = False,
        show: Callable[[Answer], Any] | None = None,
        preview: Callable[[dict[str, Any], str], Answer] | None = None,
    ) -> Any:
        """The page of a GET; for a POST ``send`` the values, with the version, to the API.

        Then the browser is led to ``to``, which says ``done``, or ``show`` renders the answer.
        ``preview`` asks the API what the change would do, if somebody presses that button.
        ``changed_only`` sends only the values that differ from those of the form. Raises Refused
        for an error that no change of the form can mend.
        """
        if request.method != "POST":
            return self.page()
        read = self._read()
        if self.errors:
            return self.page(422)
        values = {
            one.name: read[one.name]
            for one in self.fields
            if one.name in read
            and not (changed_only and one.is_unchanged(request.form, self.values.get(one.name)))
        }
        self.version = request.form.get(VERSION, "")
        ask = preview if preview is not None and PREVIEW in request.form else send
        answer = ask(values, self.version)
        self.values = {**self.values, **read}
        if answer.is_ok and ask is preview:
            self.preview = answer.data
            return self.page()
        if answer.is_ok:
            if show is not None:
                return show(answer)
            target = to if isinstance(to, str) else to(answer)
            notice = done if isinstance(done, str) else done(answer)
            return set_notice(redirect(target, 303), notice)
        if answer.status not in SHOWN_BESIDE_FIELDS:
            raise Refused(answer)
        self._explain(answer)
        return self.page(answer.status)

    def page(self, status: int = 200) -> Any:
        """The form as a page."""
        return render_template(self.template, form=self, title=self.title, **self.context), status

    def shown(self, one: Field) -> Any:
        """What the input of a field shows."""
        if one.name in self.errors and request.method == "POST" and one.kind != "checks":
            return request.form.get(one.name, "")
        return one.shown(self.values.get(one.name))

    def _read(self) -> dict[str, Any]:
        values = {}
        for one in self.fields:
            try:
                value = one.read(request.form)
            except ValueError as fault:
                self.errors[one.name] = [str(fault)]
            else:
                if value is not MISSING:
                    values[one.name] = value
        typed = request.form.get(CONFIRMATION, "").strip()
        if self.confirmation and typed != self.confirmation:
            self.errors[CONFIRMATION] = [f"Type {self.confirmation} to confirm."]
            self.values = {**self.values, **values}
        return values

    def _explain(self, answer: Answer) -> None:
        """Put the entries of a 422 beside their fields, and all else above the form."""
        names = {one.name for one in self.fields}
        for entry in answer.entries:
            place = [str(part) for part in entry["loc"][1:]]
            name = next((part for part in place if part in names), None)
            text = entry["msg"].removeprefix("Value error, ")
            if name is None:
                self.problems.append(f"{'.'.join(place)}: {text}" if place else text)
            else:
                rest = place[place.index(name) + 1 :]
                where = f"{'.'.join(rest)}: " if rest else ""
                self.errors.setdefault(name, []).append(f"{where}{text}")
        if answer.status in (409, 412):
            self.is_stale = answer.status == 412
        if answer.detail:
            self.problems.append(answer.detail)


def choices(*names: str) -> Choices:
    """Choices that are shown as they are sent."""
    return [(name, name.replace("_", " ")) for name in names]


def _number(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError("This is no number.") from None


def _local(text: str) -> str:
    """A moment as the input takes it, in UTC."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return text
