"""A command that is generated from an operation of the API."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from ..operations import Answer, Operation, Send
from .answers import program
from .common_options import further_options, offered
from .exchange import Exchange
from .names import CONFIRMED, PREVIEWED, PRINTED_AS_JSON, SUMMARIES, Spelling, command_of
from .parameters import MOMENTS, argument_of, destination, label_of, option_of, told_of, value_of
from .question import counted, question_about, read_row, shown_by
from .refusals import Command, WrongArguments, ask
from .resolver import LISTS, Resolver
from .text import in_words, print_json, printable


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
        exchange = Exchange(self.operation, self.labels, self.shown, send)
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
                preview = exchange.answer({**resolved, "dry_run": True}, written, body)
                more = f" at {written['to']} ({counted(preview.body['data'])})"
            ask(question_about(told, self.operation, resolved, row, more), yes=yes)
            if self.confirmed:
                resolved[self.confirmed] = row[self.confirmed]
        if self.operation.may_concern_all and resolver.is_for_all() and not yes:
            ask("Without --tenant this concerns all tenants. Go on?", yes=yes)
        if self.included and not {"include", "as_of"} & resolved.keys():
            resolved["include"] = self.included
        if page_all:
            self._print_list(exchange.rows_of_all_pages(resolved, written), None, as_json=as_json)
            return
        answer = exchange.answer(resolved, written, body)
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
