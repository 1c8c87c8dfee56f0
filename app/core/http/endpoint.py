"""The steps of a request (:func:`serve`), and the operation that it calls (:class:`Endpoint`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import flask
from flask import Response

from app.core.db import retries
from app.core.db.queries import id_or_none
from app.core.db.replicas import reading
from app.core.db.transactions import current_transaction
from app.core.errors import AppError, Invalid, PermissionDenied, value_error
from app.core.http import answers, idempotency, parser
from app.core.http.answers import Answer
from app.core.http.includes import Include
from app.core.http.parser import Argument
from app.core.http.rate_limit import rate_limits
from app.core.http.request import Request, current_request

SAFE_METHODS = ("GET", "HEAD")
AS_OF = "as_of"
PRESENT_ONLY = ("include", "is_at_limit", "meta_data", "plan_ends_before", "q")
"""What the names of parameters that read what has no past begin with."""


class Access:
    """A decorator that decides who may call a view. This class allows everybody."""

    permission: str | None = None  # the permission that the caller needs
    credentials: tuple[str, ...] = ()  # the kinds that are accepted; none: public
    errors: tuple[type[AppError], ...] = ()  # the errors with a code that enter() raises
    description = "Public: needs no credential."  # for the OpenAPI document

    def __call__(self, view: View) -> Guarded:
        return replace(view, access=self) if isinstance(view, Guarded) else Guarded(view, self)

    def enter(self, request: Request) -> None:
        """Authenticate and authorise: set the principal and the scope, or raise AppError."""

    def require(self, permission: str) -> None:
        """Raise PermissionDenied if the principal lacks ``permission``, which an include needs."""
        raise PermissionDenied(f"This needs the permission {permission}.")


PATH_NAMES: dict[str, Callable[[str], object]] = {}
"""Path parameter that takes an id or a name -> function that returns the id or raises NotFound."""

NOBODY = Access()
"""The access of a view without ``@requires`` or ``@public``. Requests get 403 (``hooks.begin``)."""


@dataclass(frozen=True, eq=False)
class Guarded:
    """A view with its access. Requests to views of any other type get 403 (``hooks.begin``)."""

    view: Callable[..., Any]
    access: Access = NOBODY

    def __post_init__(self) -> None:
        # Flask names the endpoint by __name__. flask-smorest documents the operation by __doc__.
        document = f"{self.view.__doc__ or ''}\n\n{self.access.description}"
        vars(self).update(__name__=self.view.__name__, __doc__=document)

    def __call__(self, **path: str) -> Any:
        return self.view(**path)


@dataclass(frozen=True, eq=False)
class Endpoint(Guarded):
    """An operation of the API, as its decorators describe it."""

    arguments: tuple[Argument, ...] = ()
    answer: Answer | None = None  # None: the view returns JSON or a Response
    errors: tuple[type[AppError], ...] = ()  # the errors with a code that the view raises
    reads_primary: bool = False  # the view must not read from a replica
    is_of_contract: bool = False  # see of_contract()
    invalid_status: int = 422  # of a request that is not valid, see refuses_with_400()
    has_past: bool = False  # see has_past()
    rule: str = ""
    operation_id: str = ""
    documented: Callable[..., Any] | None = None  # flask-smorest stores documentation in it

    @property
    def _apidoc(self) -> dict[str, Any]:
        """The documentation of the operation. flask-smorest reads this attribute of a view."""
        return {**getattr(self.documented, "_apidoc", {}), "endpoint": self}

    @cached_property
    def locations(self) -> frozenset[str]:
        """Where the arguments come from: ``json``, ``query``, ``headers``."""
        return frozenset(argument.location for argument in self.arguments)

    @cached_property
    def is_guarded(self) -> bool:
        """Whether the endpoint needs a credential."""
        return bool(self.access.credentials)

    @property
    def includes(self) -> tuple[Include, ...]:
        """The keys that ``?include=`` may name."""
        return self.answer.includes if self.answer else ()

    @cached_property
    def only_reads(self) -> bool:
        """Whether a permission to read is enough. If so, not even a POST changes anything."""
        return (self.access.permission or "").endswith(":read")

    def reads(self, request: flask.Request) -> bool:
        """Whether the request writes nothing. A POST with an ``Idempotency-Key`` stores the key."""
        if request.method in SAFE_METHODS:
            return True
        return self.only_reads and "Idempotency-Key" not in request.headers

    def __deepcopy__(self, memo: object) -> Endpoint:
        """The endpoint itself. flask-smorest copies the documentation, which contains it."""
        return self

    def __call__(self, **path: str) -> Response:
        return serve(self, current_request(), path)


View: TypeAlias = Callable[..., Any] | Guarded


def endpoint_of(view: View) -> Endpoint:
    """The view itself if an earlier decorator has made it an endpoint, else a new endpoint."""
    if isinstance(view, Endpoint):
        return view
    if isinstance(view, Guarded):
        return Endpoint(view.view, view.access, documented=view.view)
    return Endpoint(view, documented=view)


def reads_primary(view: View) -> Endpoint:
    """Decorator: read from the primary, as the answer must be exact or describes the primary."""
    return replace(endpoint_of(view), reads_primary=True)


def of_contract(view: View) -> Endpoint:
    """Decorator for the nine operations of the interface document: answer as FastAPI does.

    Unknown query parameters are ignored, and a 404 has no ``code``.
    """
    return replace(endpoint_of(view), is_of_contract=True)


def refuses_with_400(view: View) -> Endpoint:
    """Decorator: answer a request that is not valid with 400, as a standard wants, not with 422."""
    return replace(endpoint_of(view), invalid_status=400)


def has_past(view: View) -> Endpoint:
    """Decorator: ``?as_of=`` reads the rows of an earlier moment (:mod:`app.history`)."""
    return replace(endpoint_of(view), has_past=True)


def serve(endpoint: Endpoint, request: Request, path: Mapping[str, str]) -> Response:
    """Answer a request in one transaction.

    An error rolls the transaction back, and :mod:`app.core.http.error_handlers` answers it. After a
    conflict, or an error on a replica, the request first runs again (:mod:`app.core.db.retries`).
    """
    if endpoint.is_guarded:
        rate_limits().count_request(request)
    route = reading.route(endpoint, request)

    def work() -> Response:
        transaction = current_transaction()
        endpoint.access.enter(request)  # authenticate and authorise
        route.enter(transaction)  # the following statements of a read may go to a replica
        past = _enter_past(endpoint, request, path) if AS_OF in request.args else {}
        if not endpoint.reads(request):
            transaction.is_confirming = True
        if "If-Match" in request.headers:
            transaction.precondition = request.if_match
        response = idempotency.replay(request)
        if response is None:
            arguments = parser.read(endpoint, request)
            ids = {name: PATH_NAMES.get(name, str)(text) for name, text in path.items()}
            result = endpoint.view(*arguments, **ids)
            response = answers.write(endpoint.answer, result, request)
            idempotency.store(request, response)
        response.headers.update(past)
        route.finish(transaction, response)
        return response

    return retries.run(work, route.open)


def _enter_past(endpoint: Endpoint, request: Request, path: Mapping[str, str]) -> dict[str, str]:
    """Read the rows of the moment ``?as_of=``; returns the headers that tell of it."""
    loc = ("query", AS_OF)
    if not endpoint.has_past:
        raise Invalid(value_error(loc, "this operation does not read the past"))
    query = parser.query_values(request)
    if present := [name for name in query if name.startswith(PRESENT_ONLY)]:
        raise Invalid(value_error(loc, f"cannot be given with {present[0]}"))
    enter: Callable[..., dict[str, str]] = flask.current_app.extensions["enter_past"]
    tenant_id = id_or_none(query.get("tenant_id", ""))
    row_id = next(filter(None, map(id_or_none, path.values())), None)
    return enter(query[AS_OF], tenant_id, endpoint.operation_id, row_id)
