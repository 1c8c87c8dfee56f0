"""The one Blueprint: guard, transaction, idempotency, envelope, ETag and their documentation.

A view is decorated as in flask-smorest. It returns a row, a :class:`Page`, ``(row, headers)``, a
complete ``Response``, or None for an answer without a body. Around it, in this order: open the
transaction, authenticate and authorise, replay the answer of a known ``Idempotency-Key``, validate
the arguments, run the view, serialize ``{"data": …}`` with an ``ETag``, commit.

Conditional requests (RFC 9110 §13.1): the ``ETag`` is the row's version, or a digest of the body if
a GET answers something without a version. ``If-None-Match`` is compared weakly. ``If-Match`` is
optional and compared strongly under the row's lock
(:func:`app.core.db.queries.check_precondition`), so of many writers with one tag exactly one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, cast

import flask_smorest
import marshmallow as ma
from flask import Request, Response, request
from flask_smorest.utils import resolve_schema_instance, unpack_tuple_response

from app.core import json_text
from app.core.db import transactions
from app.core.db.pages import MAX_BYTES, Page
from app.core.errors import AppError
from app.core.http import consistency, idempotency, includes, long_poll
from app.core.http.includes import Include
from app.core.http.parser import RequestParser, check_has_no_query, query_values
from app.core.openapi import responses
from app.core.validation.schemas import Schema

View = Callable[..., Any]

MAX_LIST_ENVELOPE = 100  # bytes around the rows of a list


class Blueprint(flask_smorest.Blueprint):
    """flask-smorest's Blueprint with this service's rules."""

    ARGUMENTS_PARSER = RequestParser()

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
        """Register a view behind its guard and inside a transaction."""
        endpoint_func: Any = _endpoint(view_func)
        access = getattr(view_func, "access", None)
        raised = getattr(view_func, "raised", ())
        offered = includes.offered_by(view_func)
        endpoint_func._apidoc = {
            **getattr(view_func, "_apidoc", {}),
            "reads_only": hasattr(view_func, "reads_only"),
            "contract": (
                rule,
                access,
                raised,
                offered,
                operation_id(self.name, view_func.__name__),
            ),
            "answers_list": getattr(view_func, "answers_list", False),
        }
        endpoint_func.__doc__ = f"{view_func.__doc__}\n\n{getattr(access, 'description', '')}"
        super().add_url_rule(rule, endpoint, endpoint_func, *args, **options)

    @staticmethod
    def _prepare_contract_doc(
        doc: dict[str, Any], doc_info: dict[str, Any], *, method: str, **_: Any
    ) -> dict[str, Any]:
        rule, access, raised, offered, doc["operationId"] = doc_info["contract"]
        if offered:
            doc.setdefault("parameters", []).append(includes.parameter(offered))
        described = doc_info.get("manual_doc", {}).get("responses", ())
        return responses.complete(
            doc,
            described,
            has_tag=not doc_info["answers_list"] if method == "get" else "_id>" in rule,
            is_read=method == "get" or doc_info["reads_only"],
            rule=rule,
            method=method,
            access=access,
            raised=raised,
        )

    @staticmethod
    def raises(*errors: type[AppError]) -> Callable[[View], View]:
        """Document the errors of the view's own that have a ``code``.

        Those of every guarded endpoint, of ``If-Match`` and of ``Idempotency-Key`` are documented
        without it.
        """

        def decorate(view: View) -> View:
            view.raised = errors  # type: ignore[attr-defined]
            return view

        return decorate

    def response(
        self,
        status_code: int,
        schema: Any = None,
        *,
        shown_once: tuple[str, ...] = (),
        includes: tuple[Include, ...] = (),
        **documentation: Any,
    ) -> Callable[[View], View]:
        """Serialize the view's result; ``documentation`` are further options of flask-smorest.

        ``shown_once`` names fields that a replay of the stored answer must not contain, and
        ``includes`` the keys that ``?include=`` can add.
        """
        schema = cast("Schema | None", resolve_schema_instance(schema))
        document = super().response(status_code, _documented(schema, includes), **documentation)

        def decorate(view: View) -> View:
            @wraps(document(view))
            def wrapper(*args: Any, **kwargs: Any) -> Response:
                result, status, headers = unpack_tuple_response(view(*args, **kwargs))
                if isinstance(result, Response):
                    return result
                return _response(result, schema, status or status_code, headers, shown_once)

            wrapper.includes = includes  # type: ignore[attr-defined]
            wrapper.answers_list = schema is not None and schema.many  # type: ignore[attr-defined]
            return wrapper

        return decorate

    @staticmethod
    def _make_doc_response_schema(schema: ma.Schema | None) -> Any:
        """The envelope, for the OpenAPI document."""
        return None if schema is None else _envelope(type(schema), bool(schema.many))()


def operation_id(resource: str, view: str) -> str:
    """``<resource>_<verb>``, with what the verb is about where that is not the resource itself.

    In ``custom_fields``, the view ``list_fields`` gives ``custom_fields_list``, and
    ``get_json_schema`` gives ``custom_fields_get_json_schema``.
    """
    verb, _, about = view.partition("_")
    is_resource = f"_{resource}".endswith((f"_{about}", f"_{about}s"))
    return f"{resource}_{verb}" if is_resource else f"{resource}_{view}"


def _endpoint(view: View) -> View:
    """The view in a transaction; an application hook refuses a view without ``access``."""

    @wraps(view)
    def endpoint(**path: Any) -> Response:
        def answer() -> Response:
            check_has_no_query(view, request)
            includes.choose(view, request, query_values(request))
            return cast("Response", view(**path))

        def enter() -> None:
            view.access.enter(request)  # type: ignore[attr-defined]
            if _may_change(request, view):
                transactions.confirm()
            if "If-Match" in request.headers:
                transactions.context()["if_match"] = request.if_match

        def work() -> Response:
            return idempotency.answer_once(request, answer)

        return long_poll.repeat(lambda: consistency.run(view, request, enter, work))

    return endpoint


def _may_change(request: Request, view: View) -> bool:
    """Whether the request asks for a change; a POST with a permission to read does not."""
    permission = getattr(view.access, "permission", "")  # type: ignore[attr-defined]
    return request.method not in ("GET", "HEAD") and not permission.endswith(":read")


def _response(
    result: Any,
    schema: Schema | None,
    status: int,
    headers: Mapping[str, str] | None,
    shown_once: tuple[str, ...],
) -> Response:
    if schema is None:
        return Response(status=status, headers=headers)
    response = Response(status=status, content_type="application/json", headers=headers)
    if isinstance(result, Page):
        response.data = _list(result, schema)
        return response
    has_version = hasattr(result, "version") and not includes.has_any()
    if has_version:
        response.set_etag(str(result.version))
        if _is_known(response):
            return response
    if status == 201:
        response.headers.setdefault("Location", f"{request.path}/{result.id}")
    data = schema.dump(result)
    includes.add_to([data], [result])
    response.data = json_text.dumps({"data": data})
    if request.method == "GET" and not has_version:
        response.add_etag()
        if _is_known(response):
            response.data = b""
    if shown_once:
        repeatable = {name: value for name, value in data.items() if name not in shown_once}
        idempotency.replay_as(json_text.dumps({"data": repeatable}))
    return response


def _is_known(response: Response) -> bool:
    """Whether ``If-None-Match`` of a GET names the answer's ETag; then its status is 304."""
    tag, _ = response.get_etag()
    is_get = request.method == "GET"
    is_known = is_get and tag is not None and request.if_none_match.contains_weak(tag)
    if is_known:
        response.status_code = 304
    return is_known


def _list(page: Page, schema: Schema) -> bytes:
    """The JSON of a page, with fewer rows where it would have more than MAX_BYTES."""
    left = MAX_BYTES - MAX_LIST_ENVELOPE
    items: list[bytes] = []
    dumped = schema.dump(page.items)
    includes.add_to(dumped, page.items)
    for item in dumped:
        text = json_text.dumps(item)
        left -= len(text) + 1
        if left < 0 and items and page.name:
            break
        items.append(text)
    cursor = json_text.dumps(page.first(len(items)).next_cursor)
    return b'{"data":[%b],"next_cursor":%b}' % (b",".join(items), cursor)


def _documented(schema: Schema | None, offered: tuple[Include, ...]) -> Schema | None:
    if schema is None or not offered:
        return schema
    return includes.documented(type(schema), offered)(many=schema.many)


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
