"""The options and arguments of a generated command, made from an operation's arguments."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import click

from ..operations import Argument
from .refusals import ANY_TEXT, FORMS
from .times import Moment, Time

OPTIONS = {
    "tenant_id": "tenant",
    "user_id": "user",
    "membership_id": "membership",
    "subscription_id": "subscription",
    "preset_id": "plan",
    "plan_preset_id": "plan",
    "override_id": "override",
    "role_id": "role",
    "invitation_id": "invitation",
    "key_id": "key",
}
"""What people call an argument that can be named by more than its id."""
HELP = {
    "tenant": "A tenant: its slug, id or idp_org_id.",
    "user": "A user: the e-mail address, id or idp_user_id.",
    "membership": "A membership: its id, or the member's e-mail address.",
    "subscription": "A subscription: its id, or the provider's.",
    "plan": "A plan preset: its name or id.",
    "override": "An override: its id, or with --tenant the flag's key.",
    "role_id": "A role: its key or id.",
    "invitation": "An invitation: the invited address, or its id.",
    "include": "Also show this of each row.",
    "limit": "The most rows of a page.",
    "cursor": "Where the page before ended.",
}
NULL: Any = object()
"""JSON's null, in place of None, which is an option that was not given."""
MOMENTS = ("as_of", "from", "to")
"""Texts that are a time of the past or a position of the event feed."""
MOST_NAMED = 10  # choices in a refusal
REFUSED_HEADERS = ("If-Match", "If-None-Match", "Idempotency-Key", "X-Consistency")


class JsonValue(click.ParamType):
    """A value in JSON, of a type of JSON Schema."""

    name = "json"

    def __init__(self, kind: str | None) -> None:
        is_object = kind == "object"
        self.form = (
            """'{"name": "text"}'""" if is_object else "true, 10 or '\"text\"' with its quotes"
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError) as fault:
            is_broken = value.startswith(("{", "["))
            told = f": {fault}" if is_broken else f", such as {self.form}"
            self.fail(f"{value[:60]!r} is not JSON{told}.", param, ctx)
        return NULL if found is None else found


class Choice(click.Choice[str]):
    """One of some texts. A refusal names those that are near first."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        from difflib import get_close_matches  # commands without a wrong choice start sooner

        near = get_close_matches(value, self.choices, n=MOST_NAMED)
        named = [*near, *(one for one in self.choices if one not in near)][:MOST_NAMED]
        rest = ", … (--help lists all)" if len(named) < len(self.choices) else ""
        ending = f" Did you mean {near[0]}?" if near else ""
        return f"{value!r} is not one of {', '.join(named)}{rest}.{ending}"


class Pairs(click.ParamType):
    """One entry of an object, as ``NAME=VALUE``, or a whole object in JSON."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, separator, text = value.partition("=")
        if separator and not value.startswith("{"):
            return {name: text}
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.fail(f"{value}: write NAME=VALUE.", param, ctx)
        return found


class Nullable(click.ParamType):
    """A value of another type, or the word ``null``."""

    def __init__(self, inner: click.ParamType) -> None:
        self.inner = inner
        self.name = inner.name

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.inner.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NULL if value == "null" else self.inner.convert(value, param, ctx)


def is_id(text: str) -> bool:
    """Whether the text is a UUID."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def label_of(argument: Argument, *, is_positional: bool) -> str:
    """How the command names the argument: ``--tenant``, or ``TENANT``."""
    name = OPTIONS.get(argument.name, argument.name)
    if is_positional:
        return "QUERY" if name == "q" else name.removesuffix("_id").upper()
    name = name.removeprefix("X-").lower()
    if _is_many(argument) and name.endswith("s"):
        name = f"{name[:-3]}y" if name.endswith("ies") else name[:-1]
    return f"--{name.removeprefix('is_').replace('_', '-')}"


def argument_of(argument: Argument, *, reads: bool, takes_words: bool = False) -> click.Argument:
    """The positional argument; its value has the name of :func:`destination`."""
    label = label_of(argument, is_positional=True)
    return click.Argument(
        [destination(argument)],
        type=type_of(argument, reads=reads),
        metavar=f"{label}..." if takes_words else label,
        nargs=-1 if takes_words else 1,
        required=True,
    )


def told_of(argument: Argument, *, reads: bool) -> str:
    """A description of the positional argument."""
    label = label_of(argument, is_positional=True)
    told = argument.description.replace(" Not with --include.", "")  # it does not have it
    shown = replace(argument, description=told)
    return f"{label}: {_help(shown, type_of(argument, reads=reads))}"


def option_of(argument: Argument, *, reads: bool) -> click.Option:
    """The option; its value has the name of :func:`destination`."""
    label, kind = label_of(argument, is_positional=False), type_of(argument, reads=reads)
    is_flag = argument.schema.get("type") == "boolean"
    return click.Option(
        [f"{label}/--no-{label[2:]}" if is_flag else label, destination(argument)],
        type=None if is_flag else kind,
        default=None,
        multiple=_is_many(argument),
        metavar=_metavar(label, kind),
        help=_help(argument, kind) + _required(argument),
    )


def destination(argument: Argument) -> str:
    """The name of the parameter in the command's values."""
    return argument.name.replace("-", "_").lower()


def type_of(argument: Argument, *, reads: bool) -> click.ParamType:
    """The type of a value; of a list, that of each item. ``reads`` is for a parameter of a GET."""
    schema = argument.schema
    if schema.get("type") == "array":
        return _type(schema["items"], is_past=False)
    if _is_pairs(schema):
        return Pairs()
    is_past = reads or argument.name == "since" or argument.place == "header"
    is_past = is_past and not argument.name.endswith("_ends_before")  # what ends soon
    if argument.name.endswith("Timestamp"):
        return Time(is_past=is_past)
    kind = _type(schema, is_past=is_past)
    is_text = kind is click.STRING
    if is_text and argument.name in MOMENTS:
        return Moment(is_past=True)
    return Nullable(kind) if schema.get("nullable") and not is_text else kind


def value_of(argument: Argument, given: Any) -> Any:
    """The value that is sent, made from the values that click has read."""
    if _is_pairs(argument.schema):
        return {name: value for one in given for name, value in one.items()}
    if _is_many(argument):
        return [None if one is NULL else one for one in given]
    if isinstance(given, tuple):  # the rest of the line
        return " ".join(given)
    return None if given is NULL else given


def _type(schema: Mapping[str, Any], *, is_past: bool) -> click.ParamType:
    if "enum" in schema:
        return Choice([str(one) for one in schema["enum"]])
    bounds = schema.get("minimum"), schema.get("maximum")
    match schema.get("type"):
        case "string" if schema.get("format") == "date-time":
            return Time(is_past=is_past)
        case "string":
            return click.STRING
        case "integer":
            return click.INT if bounds == (None, None) else click.IntRange(*bounds)
        case "number":
            return click.FLOAT
        case _:
            return JsonValue(schema.get("type"))


def _is_pairs(schema: Mapping[str, Any]) -> bool:
    """Whether the value is an object of texts with any names."""
    others = schema.get("additionalProperties")
    return isinstance(others, Mapping) and others.get("type") == "string"


def _is_many(argument: Argument) -> bool:
    return argument.schema.get("type") == "array" or _is_pairs(argument.schema)


def _metavar(label: str, kind: click.ParamType) -> str | None:
    """The name of the option for many choices, which its help lists."""
    if isinstance(kind, click.Choice) and _is_long(kind):
        return label.removeprefix("--").replace("-", "_").upper()
    return None


def _is_long(kind: click.Choice[str]) -> bool:
    return len(", ".join(kind.choices)) > 60


def _help(argument: Argument, kind: click.ParamType) -> str:
    schema = argument.schema
    name = argument.name if argument.name in HELP else OPTIONS.get(argument.name, argument.name)
    told = HELP.get(name, argument.description)
    parts = [re.sub(r"\s+", " ", told.strip()).replace("Null:", "`null`:")]
    inner = kind.inner if isinstance(kind, Nullable) else kind
    if isinstance(inner, Time):
        parts.append(inner.help)
    if isinstance(inner, click.Choice) and _is_long(inner):
        parts.append(f"One of {', '.join(inner.choices)}.")
    if (form := FORMS.get(schema.get("pattern", ""))) and form != ANY_TEXT:
        parts.append(f"Form: {form}.")
    if isinstance(inner, JsonValue) and schema.get("type") != "boolean":
        example = json.dumps(_example(schema), ensure_ascii=False)
        parts += [f"Such as {shlex.quote(example)}."] if example != "{}" else []
    if isinstance(kind, Nullable) and "`null`" not in parts[0]:
        parts.append("`null` for none.")
    if _is_many(argument):
        parts.append("May be repeated.")
    default = schema.get("default")
    if default not in (None, "", [], {}):
        shown = default if isinstance(default, str) else json.dumps(default)
        parts.append(f" [default: {shown}]")
    return " ".join(parts)


def _example(schema: Mapping[str, Any]) -> Any:
    """The example of a value, or of a list's item; without one, those of its fields."""
    example = schema.get("examples", [()])[0]
    if "items" in schema:
        example = next(iter(example), None)
    fields = schema.get("items", schema).get("properties", {}).items()
    return example or {name: one["examples"][0] for name, one in fields if "examples" in one}


def _required(argument: Argument) -> str:
    """The end of an option's help that says whether it is required."""
    if re.search(r"(?:Without it,|by default) the (?:credential|tenant)", argument.description):
        return "  [required, except for a tenant's credential]"
    return "  [required]" if argument.required else ""
