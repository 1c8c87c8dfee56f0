"""Forms: the values people send, the API's errors beside the fields, and undoing a change.

Each form has a page of its own, which shows it, and sends it to the API when it is posted. ETag and
``If-Match`` show what somebody else has changed since the page was loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from flask import current_app, redirect, request

from app.console.api import Answer, Query, Refused, call, get_once
from app.console.blueprint import Shown, render
from app.console.fields import DRAFT, MISSING, Field, Inputs, inputs_of
from app.console.next_page import Notice, set_notice
from app.core.json_text import Json

SHOWN_BESIDE_FIELDS = (400, 409, 412, 413, 415, 422)
VERSION = "form_version"  # the names of the form's own inputs
CONFIRMATION = "form_confirmation"
EXPECTED = "form_expected"  # what has to be typed: it guards people against their own mistakes
BEFORE = "form_before"  # the values that were shown, as JSON
UNDONE = {EXPECTED: ["undo"], CONFIRMATION: ["undo"]}  # to undo a change, nothing is typed
PREVIEW = "form_preview"

Values = Mapping[str, Json]


@dataclass
class Form:
    """A form and its state. ``row`` is the API's path of what it is about, and changes."""

    title: str  # {} is the place of the name
    fields: Sequence[Field] = ()
    row: str = ""
    name: Callable[[Json], str] | None = None  # of the row, where it is shown
    values: Values = field(default_factory=dict)  # they take precedence over those of the row
    version: str = ""  # the ETag of what is shown
    submit: str = ""  # by default Save, or without fields the title's first word
    intro: str | Callable[[], str] = ""  # a function is called where it is shown
    is_dangerous: bool = False  # whatever needs a confirmation is
    confirmation: str | Callable[[], str] = ""  # what has to be typed
    back: str = ""  # where Cancel leads; by default to the page above
    can_preview: bool = False
    preview_label: str = "Preview"
    preview: Json = None  # what the change would do, once somebody has asked
    template: str = "form"
    before: Inputs = field(default_factory=dict)  # what the inputs showed at first
    remembers: bool = False  # whether it is sent with the form
    expected: str = ""  # the confirmation
    undone_by: Sequence[Field] = ()  # what the opposite change sends, where the form has no fields
    errors: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_draft: bool = False  # it is shown again as it was typed
    is_stale: bool = False  # somebody else has changed what the form is about

    def __post_init__(self) -> None:
        self.back = self.back or page_above(request.path)
        self.submit = self.submit or ("Save" if self.fields else self.title.partition(" ")[0])
        self.is_dangerous = self.is_dangerous or bool(self.confirmation)

    def send(
        self,
        method: str,
        path: str = "",
        *,
        done: str | Callable[[Answer], str] = "",
        to: str | Callable[[Answer], str] = "",
        query: Query | None = None,
        in_query: bool = False,
        body: Callable[[dict[str, Json]], Json] | Mapping[str, Json] | None = None,
        changed_only: bool = False,
        undo: str | Callable[[Inputs], str] = "",
        show: Callable[[Answer], Shown] | None = None,
        preview: str = "",
        dry_run: str = "",
    ) -> Shown:
        """The page of a GET; a POST sends the values and the version to ``path`` below the row.

        Then the browser is led to ``to``, by default where Cancel leads, which says ``done``; or
        ``show`` renders the answer. ``body`` is the request's body or makes it of the values; with
        ``in_query`` they are in the query. ``changed_only`` sends only values that differ from those
        that were shown. ``undo`` is the page, below where Cancel leads, that makes the opposite change with
        the values that were shown, or a function that chooses it by them. ``preview`` is a path below
        the row that tells what the change would do; ``dry_run`` is the name in the query with which the
        same request tells it. Raises Refused for an error that no change of the form can mend.
        """
        if changed_only:
            undo = undo or request.path.rpartition("/")[2]
        self.remembers = bool(undo) and (request.method != "POST" or BEFORE in request.form)
        self.can_preview = bool(preview or dry_run)
        if request.method != "POST":
            return self.page()
        values = self.posted(changed_only=changed_only)
        if DRAFT in request.form:
            self.is_draft, self.errors = True, {}
            return self.page()
        if self.errors:
            return self.page(422)
        sent = body(dict(values)) if callable(body) else body
        if body is None and self.fields and not in_query:
            sent = values
        is_preview = self.can_preview and PREVIEW in request.form
        if is_preview and dry_run:
            preview, query = path, {**(query or {}), dry_run: True}
        answer = call(
            "POST" if is_preview and not dry_run else method,
            self.row + (preview if is_preview else path),
            query={**(query or {}), **values} if in_query else query,
            body=sent,
            if_match=self.version,
        )
        if answer.is_ok and is_preview:
            self.preview = answer.data
            return self.page()
        if answer.is_ok and show is not None:
            return show(answer)
        if answer.is_ok:
            target = to(answer) if callable(to) else to or self.back
            told = done(answer) if callable(done) else done
            return set_notice(redirect(target, 303), self._notice(told, answer, undo))
        if answer.status not in SHOWN_BESIDE_FIELDS:
            raise Refused(answer)
        self._explain(answer)
        return self.page(answer.status)

    def page(self, status: int = 200) -> Shown:
        self._show_row()
        if self.name:
            self.title = self.title.replace("{}", self.name(self.values))
        if request.method != "POST":
            self.before |= inputs_of((*self.fields, *self.undone_by), self.values)
            self.expected = self._confirmation()
        return render(self.template, self.title, form=self), status

    def new_row(self, answer: Answer) -> str:
        """The page of the row that the answer contains, below the page above."""
        return f"{self.back}/{answer.data['id']}"

    @property
    def above(self) -> str:
        """The page above the one to which Cancel leads: the list of a row that is gone."""
        return page_above(self.back)

    def _confirmation(self) -> str:
        return self.confirmation() if callable(self.confirmation) else self.confirmation

    def _show_row(self) -> None:
        """Take the values of the row and its version, for a page or to compare."""
        if self.row:
            found = get_once(self.row)
            self.values = {**found.data, **self.values}
            if request.method != "POST":
                self.version = found.etag

    def posted(self, *, changed_only: bool = False) -> dict[str, Json]:
        """The values to send; the form shows what was typed from now on."""
        self.version = request.form.get(VERSION, "")
        values = typed = self._read()
        if changed_only and not self.errors:
            unchanged = {
                one.name for one in self.fields if one.is_unchanged(request.form, self.before)
            }
            values = {name: value for name, value in typed.items() if name not in unchanged}
        self.values = {**self.values, **typed}
        return values

    def _notice(self, text: str, answer: Answer, undo: str | Callable[[Inputs], str]) -> Notice:
        """The notice of a change, with the opposite change if the shown values are known."""
        if not self.remembers:
            return Notice(text)
        page = undo(self.before) if callable(undo) else undo
        now = {name: request.form.getlist(name) for name in self.before}
        values = {VERSION: [answer.etag], BEFORE: [json.dumps(now)], **UNDONE, **self.before}
        return Notice(text, f"{self.back}/{page}", values)

    def shown(self, one: Field) -> Json:
        """The value that a field's input shows."""
        if self.is_draft or (one.name in self.errors and request.method == "POST"):
            return one.typed(request.form)
        return one.shown(self.values.get(one.name))

    def _read(self) -> dict[str, Json]:
        values: dict[str, Json] = {}
        for one in self.fields:
            try:
                value = one.read(request.form)
            except ValueError as fault:
                self.errors[one.name] = [str(fault)]
            else:
                if value is not MISSING:
                    values[one.name] = value
        try:
            before = json.loads(request.form.get(BEFORE, "{}"))
            self.before |= {name: [str(each) for each in texts] for name, texts in before.items()}
        except (ValueError, TypeError, AttributeError, RecursionError):
            self.remembers = False
        if self.confirmation:
            self.expected = request.form.get(EXPECTED, "") or self._confirmation()
            is_confirmed = request.form.get(CONFIRMATION, "").strip() == self.expected
            if PREVIEW not in request.form and not is_confirmed:
                self.errors[CONFIRMATION] = [f"Type {self.expected} to confirm."]
        return values

    def _explain(self, answer: Answer) -> None:
        """Put the entries of a 422 beside their fields, and all else above the form."""
        names = {one.name: one for one in self.fields}
        for entry in answer.entries:
            place = [str(part) for part in entry["loc"][1:]]
            name = next((part for part in place if part in names), None)
            text = entry["msg"].removeprefix("Value error, ")
            if name is None:
                self.problems.append(f"{'.'.join(place)}: {text}" if place else text)
            else:
                rest = place[place.index(name) + 1 :]
                where = f"{names[name].place(rest)}: " if rest else ""
                self.errors.setdefault(name, []).append(f"{where}{text}")
        self.is_stale = answer.status == 412
        if answer.detail:
            self.problems.append(answer.detail)


def page_above(path: str) -> str:
    """The nearest page above a path: from /x/edit it is /x, or the one above where /x is none."""
    pages = current_app.url_map.bind("")
    above = path.rpartition("/")[0]
    is_page = pages.match(above, "GET")[0] != "console.unknown_page"
    return above if is_page else page_above(above)


def row_form(
    path: str,
    row_id: UUID | str,
    title: str,
    intro: str | Callable[[], str] = "",
    fields: Sequence[Field] = (),
    **more: Any,
) -> Form:
    """A form about the row with this id, one of those at ``path``."""
    return Form(title, fields, row=f"{path}/{row_id}", intro=intro, **more)
