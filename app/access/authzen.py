"""AuthZEN's Authorization API 1.0: may somebody do something with a resource, now, and who, what?

Bodies and errors have the standard's forms: a body that is not valid is answered with 400, a refusal
with 200 and the reason in `context`.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from flask import Response

from app.access import authzen_schemas as schemas
from app.access.evaluating import Semantic, evaluate
from app.access.questions import Question, Thing
from app.access.searching import search
from app.auth.guard import current_actor, current_principal, home_tenant_id, public, requires
from app.auth.permissions import Permission
from app.core import json_text
from app.core.errors import Invalid, value_error
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import reads_primary, refuses_with_400
from app.core.http.request import current_request
from app.core.http.routing import own_address
from app.core.json_text import Json

blp = Blueprint(
    "authzen",
    __name__,
    url_prefix="/access/v1",
    description="Whether somebody may do something now, by AuthZEN's Authorization API 1.0.",
)
metadata = Blueprint("authzen_metadata", __name__, description="Where AuthZEN's endpoints are.")
ENDPOINTS = {
    "access_evaluation_endpoint": "evaluation",
    "access_evaluations_endpoint": "evaluations",
    "search_subject_endpoint": "search/subject",
    "search_resource_endpoint": "search/resource",
    "search_action_endpoint": "search/action",
}


def answered(description: str, schema: Any) -> dict[str, Json]:
    """The documentation of the answer, which has no envelope."""
    return {
        "200": {"description": description, "content": {"application/json": {"schema": schema}}}
    }


EVALUATIONS = {
    "type": "object",
    "description": "The decisions, or the one of a single question.",
    "properties": {
        "evaluations": {
            "type": "array",
            "items": schemas.AccessEvaluationSchema,
            "description": "The decisions, in the order of the questions.",
        },
        "decision": {"type": "boolean", "description": "Of a single question."},
        "context": {"type": "object", "description": "Of a single question."},
    },
}
METADATA = {
    "type": "object",
    "description": "The addresses of AuthZEN's endpoints.",
    "required": ["policy_decision_point", *ENDPOINTS],
    "properties": {
        name: {"type": "string", "format": "uri", "description": "An address."}
        for name in ("policy_decision_point", *ENDPOINTS)
    },
}


@blp.post("/evaluation")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessQuestionSchema)
@blp.doc(responses=answered("The decision.", schemas.AccessEvaluationSchema))
@refuses_with_400
@reads_primary
def evaluate_one(body: dict[str, Json]) -> Response:
    """Decide whether a subject may do something with a resource now (AuthZEN).

    The tenant, the user and the membership must be active; a role must give the permission for the
    whole tenant, the resource or one above it; the flag that the permission requires must be on, and
    the limit must have something left. `context.reason` says which of these refuses first. With
    `context.consume`, which also needs `usage:write`, a yes has counted the amount.
    """
    return _answer(_evaluate([Question(**body)])[0])


@blp.post("/evaluations")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessQuestionsSchema)
@blp.doc(responses=answered("The decisions.", EVALUATIONS))
@refuses_with_400
@reads_primary
def evaluate_several(body: dict[str, Json]) -> Response:
    """Decide up to 100 questions, in their order (AuthZEN).

    Without `evaluations` it is one question, answered as at `/access/v1/evaluation`.
    """
    answers = _evaluate(**body)
    return _answer({"evaluations": answers} if "semantic" in body else answers[0])


def _evaluate(
    questions: list[Any], semantic: Semantic = Semantic.EXECUTE_ALL
) -> list[dict[str, Json]]:
    if any(isinstance(one, Question) and one.consume for one in questions):
        current_principal().check(Permission.USAGE_WRITE)
    verdicts = evaluate(questions, actor=current_actor(), semantic=semantic, home=home_tenant_id())
    return [schemas.answer_of(verdict) for verdict in verdicts]


@blp.post("/search/subject")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessSubjectSearchSchema)
@blp.doc(responses=answered("The subjects.", schemas.AccessThingsSchema))
@refuses_with_400
def find_subjects(body: dict[str, Json]) -> Response:
    """Find the subjects of a type that may do something with a resource (AuthZEN).

    A `user` is answered by the `idp_user_id`, or by the id where that is empty. A page can have fewer
    results than its limit, also none; `page.next_token` is empty after the last page.
    """
    return _search("subject", body)


@blp.post("/search/resource")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessResourceSearchSchema)
@blp.doc(responses=answered("The resources.", schemas.AccessThingsSchema))
@refuses_with_400
def find_resources(body: dict[str, Json]) -> Response:
    """Find the registered resources of a type with which a subject may do something (AuthZEN)."""
    return _search("resource", body)


@blp.post("/search/action")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessActionSearchSchema)
@blp.doc(responses=answered("The actions.", schemas.AccessActionsSchema))
@refuses_with_400
def find_actions(body: dict[str, Json]) -> Response:
    """Find the product's permissions that a subject has on a resource (AuthZEN)."""
    return _search("action", body)


def _search(kind: str, body: dict[str, Json]) -> Response:
    page = body.pop("page")
    mark = hashlib.sha256(f"{kind} {body}".encode()).hexdigest()[:16]
    limit = min(page["limit"], schemas.MAX_PAGE)
    found = search(kind, Question(**body), _place(page["token"], mark), limit, home_tenant_id())
    token = "" if found.last is None else _token(mark, found.last)
    results = [_result(one) for one in found.things]
    return _answer({"page": {"next_token": token, "count": len(results)}, "results": results})


def _result(thing: Thing) -> dict[str, str]:
    return {"type": thing.type, "id": thing.id} if thing.type else {"name": thing.id}


def _token(mark: str, place: str) -> str:
    return base64.urlsafe_b64encode(json_text.dumps([mark, place])).decode()


def _place(token: str, mark: str) -> str:
    """The place in a token; "" without one. Raises Invalid for a token of another search."""
    if not token:
        return ""
    try:
        found, place = json_text.loads(base64.urlsafe_b64decode(token.encode("ascii")).decode())
        if found != mark or _token(mark, place) != token:
            raise ValueError("not written here")
    except (ValueError, TypeError):
        reason = "this is not the next_token of a page of the same search"
        raise Invalid(value_error(["body", "page", "token"], reason, token)) from None
    return str(place)


def _answer(body: dict[str, Json]) -> Response:
    return Response(json_text.dumps(body), content_type="application/json")


@metadata.get("/.well-known/authzen-configuration")
@public
@metadata.doc(responses=answered("The addresses.", METADATA))
def get_metadata() -> Response:
    """Get the addresses of AuthZEN's endpoints."""
    base = own_address(current_request())
    addresses = {name: f"{base}{blp.url_prefix}/{path}" for name, path in ENDPOINTS.items()}
    return _answer({"policy_decision_point": base, **addresses})
