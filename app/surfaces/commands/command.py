"""A command that is generated from an operation of the API."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from ..operations import JSON, Answer, Operation, Send
from .answers import leave_out_refused, missing_row, program, succeeded
from .common_options import further_options, offered
from .names import CONFIRMED, PREVIEWED, PRINTED_AS_JSON, SUMMARIES, Spelling, command_of
from .parameters import MOMENTS, argument_of, destination, label_of, option_of, told_of, value_of
from .question import question_about, read_row, shown_by
from .refusals import Command, WrongArguments, ask
from .resolver import LISTS, Resolver
from .text import in_words, print_json, printable
from .times import relative


class GeneratedCommand(Command):
    """One command of an operation; ``connect`` makes what sends its requests."""

    def __init__(
        self,
        operation: Operation,
        spelling: Spelling,
        known: list[Operation],
        connect: Callable[[click.Context], Send],
    ) -> None:
        self.operation = operation
        self.spelling = spelling
        self.known = known
        self.connect = connect
        self.confirmed = CONFIRMED.get(operation.name)
        self.shown = shown_by(operation, known)
        arguments = offered(operation, spelling)
        ends = operation.method == "patch" and any(one.name == "is_active" for one in arguments)
        ends = ends or spelling.fixed.get("is_active") is False
        self.may_destroy = operation.is_destructive or ends
        self.labels = {"include": "--include"} | {
            one.name: label_of(one, is_positional=one.name in spelling.positional)
            for one in arguments
        }
        self.offered = {
            destination(one): replace(one, description=in_words(one.description, self.labels))
            for one in arguments
        }
        tabled = {column.partition(".")[0] for column in operation.columns}
        self.included = [
            name
            for name in operation.includes
            if name in tabled and (operation.is_list or "x-columns" in operation.about)
        ]
        told = SUMMARIES.get(" ".join(spelling.words))
        self.summary, clause = told or operation.summary, told or operation.clause
        super().__init__(
            spelling.words[-1],
            callback=self.run,
            params=list(self._parameters()),
            help="\n\n".join([in_words(f"{self.summary}.", self.labels), *self._explanations()]),
            short_help=in_words(f"{clause}.", self.labels),
            # A value such as -1 or -1h is not an option.
            context_settings={"ignore_unknown_options": self._takes_numbers()},
        )

    def run(
        self,
        *,
        as_json: bool,
        yes: bool = False,
        page_all: bool = False,
        body: Any = None,
        within: str | None = None,
        **given: Any,
    ) -> None:
        """Send the request, and print the answer."""
        send = self.connect(click.get_current_context())
        values = {
            one.name: value_of(one, given[name])
            for name, one in self.offered.items()
            if given[name] not in (None, ())
        }
        if body is None:
            self._check_required({**values, **self.spelling.fixed})
        written = {**self.spelling.defaults, **values, **self.spelling.fixed}
        resolver = Resolver(send, within or values.get("tenant_id"))
        resolved = {name: resolver.id_of(name, value, written) for name, value in written.items()}
        named = {**(body if isinstance(body, dict) else {}), **written}
        is_preview = self.operation.name in PREVIEWED and named.get("dry_run", True) is True
        destroys = self.operation.is_destructive or named.get("is_active") is False
        if self.may_destroy and destroys and not is_preview and (self.confirmed or not yes):
            row = read_row(self.shown, resolved, send, named=written)
            told = self.summary.partition(";")[0] + " (--no-active)" * ("is_active" in values)
            more = ""
            if self.operation.name in PREVIEWED:
                from .output import text_of

                dry_run = self._send(send, {**resolved, "dry_run": True}, written, body)
                preview = dry_run.body["data"]
                least = "" if preview["is_complete"] else "at least "
                counts = text_of(preview["counts"] or "no changes")
                more = f" at {written['to']} ({least}{counts})"
            ask(question_about(told, self.operation, resolved, row, more), yes=yes)
            if self.confirmed:
                resolved[self.confirmed] = row[self.confirmed]
        if self.operation.may_concern_all and resolver.is_for_all() and not yes:
            ask("Without --tenant this concerns all tenants. Go on?", yes=yes)
        if self.included and not {"include", "as_of"} & resolved.keys():
            resolved["include"] = self.included
        if page_all:
            self._print_list(self._all_pages(send, resolved, written), None, as_json=as_json)
            return
        answer = self._send(send, resolved, written, body)
        if answer.status == 202 and not is_preview and not as_json:
            click.echo(f"Under way.{self._showing(answer, resolved)}", err=True)
        elif answer.body is None:
            self._print_done(resolved, as_json=as_json)
        elif isinstance(answer.body, str):
            click.echo(answer.body, nl=False)
        else:
            self._print(answer.body, as_json=as_json)
        if is_preview:
            self._print_next(named, answer.body["data"])
        if "allowed" in self.operation.data.get("properties", ()):
            click.get_current_context().exit(answer.body["data"]["allowed"] is False)
        if (
            self.operation.name == "flags_explain"
            and answer.body["data"].get("decided_by") == "not_in_plan"
        ):
            click.echo(resolver.nearest("flag", written["key"]).strip(), err=True)
            click.get_current_context().exit(1)

    def _showing(self, answer: Answer, values: Mapping[str, Any]) -> str:
        """The sentence with the command that shows the result of work; empty without one."""
        path = answer.headers.get("Location", "")
        if not path and self.shown and self.operation.method != "delete":
            place = {name: values[name] for name in self.shown.names_in("path")}
            path = self.shown.request(place).path
        return path and f" This shows the result: {program()} {command_of(path, self.known)}"

    def _check_required(self, values: Mapping[str, Any]) -> None:
        """Refuse missing options, with exit code 2, before anything is asked or sent."""
        if self.operation.method == "patch" and not values.keys() - {
            *self.operation.names_in("path")
        }:
            raise WrongArguments("Give at least one option.")
        missing = [
            self.labels[one.name]
            + (f" ({'|'.join(map(str, one.schema['enum']))})" if "enum" in one.schema else "")
            for one in self.offered.values()
            if one.required and one.name not in values
        ]
        if missing:
            raise WrongArguments(f"Missing {', '.join(missing)}.")

    def _parameters(self) -> Iterator[click.Parameter]:
        by_name = {one.name: one for one in self.offered.values()}
        reads, positional = self.operation.is_reading, self.spelling.positional
        for name in positional:
            is_rest = self.spelling.takes_words and name == positional[-1]
            yield argument_of(by_name[name], reads=reads, takes_words=is_rest)
        for name, one in by_name.items():
            if name not in positional:
                yield option_of(one, reads=reads)
        yield from further_options(
            self.operation,
            self.spelling,
            list(by_name.values()),
            asks=self.may_destroy or self.operation.may_concern_all,
        )

    def _explanations(self) -> Iterator[str]:
        """The operation's description, without the permission, which operators have; the arguments."""
        text = str(self.operation.about.get("description", ""))
        yield in_words(text.partition("Requires the permission")[0], self.labels)
        for name in self.spelling.positional:
            argument = next(one for one in self.offered.values() if one.name == name)
            yield told_of(argument, reads=self.operation.is_reading)

    def _takes_numbers(self) -> bool:
        named = [one for one in self.offered.values() if one.name in self.spelling.positional]
        types = ("integer", "number", None)
        return any(one.schema.get("type") in types or one.name in MOMENTS for one in named)

    def _send(
        self, send: Send, values: dict[str, Any], named: Mapping[str, Any], body: Any = None
    ) -> Answer:
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
        answer = send(request)
        if "include" not in named and leave_out_refused(self.operation, values, answer):
            return self._send(send, values, named, body)
        if answer.status == 409 and answer.body.get("code") == "flag_key_taken":
            place = f"{named['flag_key']} VALUE --tenant {named['tenant_id']}"
            answer.body["detail"] += f" Run: {program()} flags update-override {printable(place)}"
        missing = missing_row(self.operation, named, answer)
        nearest = Resolver(send, values.get("tenant_id")).nearest
        if answer.status == 404 and "role" in named and "no role" in missing:
            missing += nearest("role", named["role"])
        if answer.status == 404 and missing.endswith(" then."):
            missing = missing[:-1] + self._when_created(send, values)
        return succeeded(answer, labels=self.labels, missing=missing, nearest=nearest)

    def _when_created(self, send: Send, values: Mapping[str, Any]) -> str:
        """The end of a sentence about a row that was missing at an earlier moment."""
        row: Mapping[str, Any] = {}
        if self.shown:
            row = read_row(self.shown, values, send, named=values)
        elif "tenant_id" in values:
            row = Resolver(send).find("tenant", values["tenant_id"])
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

    def _all_pages(self, send: Send, values: dict[str, Any], named: Mapping[str, Any]) -> list[Any]:
        """The rows of all pages, with a line of progress on a terminal."""
        place = self.operation.page_parameter or ""
        rows: list[Any] = []
        for one in self.operation.arguments:
            if one.name == "limit":
                values = {"limit": one.schema.get("maximum"), **values}
        while True:
            page = self._send(send, values, named).body
            rows += page["data"]
            is_last = not page["data"] or not page.get("next_cursor")
            if sys.stderr.isatty():
                click.echo(f"\r{len(rows)} rows", nl=is_last, err=True)
            if is_last:
                return rows
            values = {**values, place: page["next_cursor"]}

    def _print_done(self, values: Mapping[str, Any], *, as_json: bool) -> None:
        """Report a success that has no body; in JSON, with the ids of the path."""
        if as_json:
            print_json({name: values[name] for name in self.spelling.positional})
        else:
            click.echo("Done.", err=True)

    def _print_next(self, named: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """After a preview, print the command that makes the changes, with the same moment."""
        if not data["done"] and data["is_complete"]:
            click.echo("Nothing would change.", err=True)
            return
        chosen = {**named, "to": data["to_position"]}
        chosen.pop("dry_run", None)
        words = [chosen.pop(name) for name in self.spelling.positional]
        for name, values in chosen.items():
            words += [word for one in values or () for word in (self.labels[name], one)]
        command = f"{click.get_current_context().command_path} {shlex.join(map(str, words))}"
        click.echo(f"Nothing was changed. This makes the changes: {command} --no-dry-run", err=True)

    def _print(self, body: Any, *, as_json: bool) -> None:
        data = body.get("data", body)
        if isinstance(data, list):
            cursor = body.get("next_cursor") if self.operation.page_parameter == "cursor" else None
            self._print_list(data, cursor, as_json=as_json)
        elif as_json or self.operation.name in PRINTED_AS_JSON:
            print_json(data)
        else:
            from .output import print_fields  # a command without a table starts sooner

            print_fields(data)
            if tested := data.get("progress", {}).get("tested_at"):
                error = data["progress"]["test_error"]
                told = f"failed: {printable(error)}" if error else "passed."
                click.echo(f"The test at {tested} {told}", err=True)

    def _print_list(self, rows: list[Any], cursor: str | None, *, as_json: bool) -> None:
        if as_json:
            print_json(rows)
        else:
            from .output import print_rows

            missing = {*self.included}.difference(*rows[:1])  # of the past, or not permitted
            columns = [
                name for name in self.operation.columns if name.partition(".")[0] not in missing
            ]
            if self.operation.name == "operations_state_list_work":
                rows = [row for row in rows if row["count"] != 0]  # None was not counted in time
                rows = [{**row, "list": command_of(row["list"], self.known)} for row in rows]
                if not rows:
                    click.echo("Nothing needs attention.", err=True)
                    return
            path = self.operation.path
            takes_id = any(one.path.startswith(f"{path}/{{") for one in self.known)
            has_name = path in [path for path, _ in LISTS.values()]
            print_rows(rows, columns, as_json=False, keeps_id=takes_id and not has_name)
        if cursor:
            click.echo(f"There are more rows: give --all, or --cursor {cursor}.", err=True)
