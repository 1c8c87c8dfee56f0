"""The class of every blueprint: its decorators make a view an :class:`Endpoint` and document it.

A view is decorated as in flask-smorest. :func:`app.core.http.endpoint.serve` shows the steps of a
request. :mod:`app.core.http.answers` says which values a view can return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import flask_smorest
import marshmallow as ma
from apispec import APISpec
from flask_smorest.utils import resolve_schema_instance

from app.core.errors import AppError, NotFound
from app.core.http import includes
from app.core.http.answers import Answer
from app.core.http.endpoint import Endpoint, View, endpoint_of
from app.core.http.includes import Include
from app.core.http.parser import Argument
from app.core.openapi import responses
from app.core.validation.schemas import Schema

Decorator = Callable[[View], Endpoint]
AS_OF = {
    "name": "as_of",
    "in": "query",
    "description": "The state at this time (RFC 3339), or at this position of the event feed. The"
    " header `X-As-Of` has the position, and `X-As-Of-Incomplete` names what the answer"
    " [lacks](../concepts/history.md). Not with `include`. In lists not with `q` and `meta_data`.",
    "schema": {"type": "string", "minLength": 1},
    "example": "2026-11-24T14:00:00Z",
}


class DocumentedArguments:
    """Replaces webargs' parser, because :mod:`app.core.http.parser` reads the arguments."""

    DEFAULT_VALIDATION_STATUS = 422

    def use_args(self, schema: Any, *, location: str) -> Callable[[Any], Any]:
        """Return the view unchanged. flask-smorest itself documents the arguments."""
        return lambda view: view


class Blueprint(flask_smorest.Blueprint):
    """flask-smorest's Blueprint with this service's rules."""

    ARGUMENTS_PARSER = DocumentedArguments()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._prepare_doc_cbks.append(self._prepare_contract_doc)

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        """Register an endpoint. Requests to one without ``access`` get 403 (``hooks.begin``)."""
        name = operation_id(self.name, view_func.__name__)
        described = replace(endpoint_of(view_func), rule=rule, operation_id=name)
        if described.has_past:
            described = replace(described, errors=(*described.errors, NotFound.of("tenant")))
        super().add_url_rule(rule, endpoint, described, *args, **options)

    @staticmethod
    def _prepare_contract_doc(
        doc: dict[str, Any], doc_info: dict[str, Any], *, method: str, spec: APISpec, **_: Any
    ) -> dict[str, Any]:
        endpoint: Endpoint = doc_info["endpoint"]
        doc["operationId"] = endpoint.operation_id
        if endpoint.includes:
            names = _include_names(endpoint.answer, spec)
            parameter = includes.parameter(endpoint.includes, names)
            doc.setdefault("parameters", []).append(parameter)
        if endpoint.has_past:
            doc.setdefault("parameters", []).append(AS_OF)
        described = doc_info.get("manual_doc", {}).get("responses", ())
        return responses.complete(doc, described, endpoint, method)

    @staticmethod
    def raises(*errors: type[AppError]) -> Decorator:
        """Document the errors with a ``code`` that this view raises.

        Errors that every guarded endpoint has, and errors of ``If-Match`` and ``Idempotency-Key``,
        are documented automatically.
        """
        return lambda view: replace(endpoint_of(view), errors=errors)

    def arguments(self, schema: Any, *, location: str = "json", **documentation: Any) -> Decorator:
        """Pass one more argument to the view: the ``json``, ``query`` or ``headers`` it loads."""
        argument = Argument(location, cast("Schema", resolve_schema_instance(schema)))
        document = super().arguments(schema, location=location, **documentation)

        def decorate(view: View) -> Endpoint:
            endpoint = _documenting(view, document)
            return replace(endpoint, arguments=(argument, *endpoint.arguments))

        return decorate

    def response(
        self,
        status_code: int,
        schema: Any = None,
        *,
        shown_once: tuple[str, ...] = (),
        includes: tuple[Include, ...] = (),
        **documentation: Any,
    ) -> Decorator:
        """Serialize the view's result by ``schema``; flask-smorest gets ``documentation``.

        ``shown_once`` names fields that a replayed answer must not contain. ``includes`` are the
        keys that ``?include=`` can add.
        """
        schema = cast("Schema | None", resolve_schema_instance(schema))
        document = super().response(status_code, _documented(schema, includes), **documentation)
        answer = Answer(status_code, schema, shown_once, includes)
        return lambda view: replace(_documenting(view, document), answer=answer)

    def alt_response(self, *args: Any, **documentation: Any) -> Decorator:
        document = super().alt_response(*args, **documentation)
        return lambda view: _documenting(view, document)

    def doc(self, **documentation: Any) -> Decorator:
        document = super().doc(**documentation)
        return lambda view: _documenting(view, document)

    def columns(self, *names: str) -> Decorator:
        """Name the columns of the commands' tables; ``user.email`` needs the include ``user``."""
        return self.doc(**{"x-columns": names})

    @staticmethod
    def _make_doc_response_schema(schema: ma.Schema | None) -> Any:
        """The schema of ``{"data": …}``, for the OpenAPI document."""
        return None if schema is None else _envelope(type(schema), bool(schema.many))()


def operation_id(resource: str, view: str) -> str:
    """``<resource>_<verb>``, or ``<resource>_<view>`` if the view's name is not about the resource.

    In ``custom_fields``, the view ``list_fields`` gives ``custom_fields_list``, and
    ``get_json_schema`` gives ``custom_fields_get_json_schema``.
    """
    verb, _, about = view.partition("_")
    is_resource = f"_{resource}".endswith((f"_{about}", f"_{about}s"))
    return f"{resource}_{verb}" if is_resource else f"{resource}_{view}"


def _documenting(view: View, document: Callable[[Any], Any]) -> Endpoint:
    """The view's endpoint; ``document``, a decorator of flask-smorest, adds documentation to it."""
    endpoint = endpoint_of(view)
    return replace(endpoint, documented=document(endpoint.documented))


def _documented(schema: Schema | None, offered: tuple[Include, ...]) -> Schema | None:
    if schema is None or not offered:
        return schema
    return includes.documented(type(schema), offered)(many=schema.many)


def _include_names(answer: Answer | None, spec: APISpec) -> dict[str, str]:
    """The enumeration of the values of ``include``; all operations of a resource share it."""
    if answer is None or answer.schema is None:
        raise TypeError("only rows have includes")
    name = f"{type(answer.schema).__name__.removesuffix('Schema')}Include"
    described = {"title": name, "description": "A key that `include` can add to each item."}
    enum = {"type": "string", **described, "enum": [one.name for one in answer.includes]}
    components = spec.components
    if components.schemas.setdefault(name, enum)["enum"] != enum["enum"]:
        raise TypeError(f"{name} differs between operations")
    return components.get_ref("schema", name)


@cache
def _envelope(schema: type[ma.Schema], many: bool) -> type[ma.Schema]:
    name = schema.__name__.removesuffix("Schema")
    if not many:
        item = ma.fields.Nested(
            schema, required=True, metadata={"description": "What is answered."}
        )
        return ma.Schema.from_dict({"data": item}, name=f"{name}Answer")
    items = ma.fields.List(
        ma.fields.Nested(schema), required=True, metadata={"description": "The rows of the page."}
    )
    if not getattr(schema, "has_pages", True):
        return ma.Schema.from_dict({"data": items}, name=f"{name}List")
    cursor = ma.fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Give it as `cursor` for the next page; null on the last."},
    )
    return ma.Schema.from_dict({"data": items, "next_cursor": cursor}, name=f"{name}List")
