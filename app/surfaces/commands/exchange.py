"""The requests of one run of a command, and what their refusals say."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from ..operations import JSON, Answer, Operation, Send
from .answers import leave_out_refused, missing_row, program, succeeded
from .question import read_row
from .resolver import Resolver
from .text import printable
from .times import relative


@dataclass(frozen=True)
class Exchange:
    """Sends what an operation needs; ``labels`` has the command's names of arguments.

    ``shown`` is the operation that shows the row, None without one.
    """

    operation: Operation
    labels: Mapping[str, str]
    shown: Operation | None
    send: Send

    def answer(self, values: dict[str, Any], named: Mapping[str, Any], body: Any = None) -> Answer:
        """The answer of a success; ``named`` has the values as they were written.

        ``values`` loses includes that nobody has asked for and the credential may not read.
        """
        fields = {one.name for one in self.operation.arguments if one.place == "body"}
        parameters = {name: value for name, value in values.items() if name not in fields}
        if not isinstance(body, bytes):
            body = self._body({name: values[name] for name in values if name in fields}, body)
        try:
            request = self.operation.request(parameters, body)
        except ValueError as fault:  # an empty argument
            raise click.UsageError(str(fault)) from None
        answer = self.send(request)
        if "include" not in named and leave_out_refused(self.operation, values, answer):
            return self.answer(values, named, body)
        if answer.status == 409 and answer.body.get("code") == "flag_key_taken":
            place = f"{named['flag_key']} VALUE --tenant {named['tenant_id']}"
            answer.body["detail"] += f" Run: {program()} flags update-override {printable(place)}"
        missing = missing_row(self.operation, named, answer)
        nearest = Resolver(self.send, values.get("tenant_id")).nearest
        if answer.status == 404 and "role" in named and "no role" in missing:
            missing += nearest("role", named["role"])
        if answer.status == 404 and missing.endswith(" then."):
            missing = missing[:-1] + self._when_created(values)
        return succeeded(answer, labels=self.labels, missing=missing, nearest=nearest)

    def _when_created(self, values: Mapping[str, Any]) -> str:
        """The end of a sentence about a row that was missing at an earlier moment."""
        row: Mapping[str, Any] = {}
        if self.shown:
            row = read_row(self.shown, values, self.send, named=values)
        elif "tenant_id" in values:
            row = Resolver(self.send).find("tenant", values["tenant_id"])
        created = row.get("created_at")
        return f"; it was created at {created} ({relative(created)})." if created else "."

    def _body(self, fields: dict[str, Any], given: Any) -> Any:
        """The JSON body: that of ``--body``, with the fields that options have."""
        if self.operation.media_type != JSON:
            return None
        if given is not None and not isinstance(given, dict):
            return given
        body = {**(given or {}), **fields}
        return body if body or self.operation.needs_body else None

    def rows_of_all_pages(self, values: dict[str, Any], named: Mapping[str, Any]) -> list[Any]:
        """The rows of all pages, with a line of progress on a terminal."""
        place = self.operation.page_parameter or ""
        rows: list[Any] = []
        for one in self.operation.arguments:
            if one.name == "limit":
                values = {"limit": one.schema.get("maximum"), **values}
        while True:
            page = self.answer(values, named).body
            rows += page["data"]
            is_last = not page["data"] or not page.get("next_cursor")
            if sys.stderr.isatty():
                click.echo(f"\r{len(rows)} rows", nl=is_last, err=True)
            if is_last:
                return rows
            values = {**values, place: page["next_cursor"]}
