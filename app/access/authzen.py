"""AuthZEN's Authorization API 1.0: decisions, and searches for subjects, resources and actions.

Bodies and errors have the standard's forms: a body that is not valid is answered with 400, a refusal
with 200 and the reason in ``context``.
"""

from __future__ import annotations

import hashlib
from typing import Any

from app.access import authzen_schemas as schemas
from app.access.evaluating import Semantic, evaluate
from app.access.questions import Question
from app.access.searching import search
from app.auth.guard import current_actor, current_principal, home_tenant_id, public, requires
from app.auth.permissions import Permission
from app.core.db.list_cursors import pack, unpack
from app.core.db.queries import id_or_none
from app.core.errors import Invalid, value_error
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import AS_OF, has_past, reads_primary, refuses_with_400
from app.core.http.request import current_request
from app.core.http.routing import own_address
from app.core.json_text import Json

blp = Blueprint(
    "authzen", __name__, url_prefix="/access/v1", description="Decisions by AuthZEN's API 1.0."
)
metadata = Blueprint("authzen_metadata", __name__, description="Where AuthZEN's endpoints are.")


def answered(schema: Any) -> dict[str, Json]:
    """The documentation of an answer, which has no envelope."""
    body = {"application/json": {"schema": schema}}
    return {"200": {"description": schema["description"], "content": body}}


@blp.post("/evaluation")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessQuestionSchema)
@blp.doc(responses=answered(schemas.EVALUATION))
@refuses_with_400
@reads_primary
@has_past
def evaluate_one(body: dict[str, Json]) -> dict[str, Json]:
    """Decide whether a subject may do something with a resource now (AuthZEN).

    The tenant, the user and the membership must be active; a role must give the permission for the
    whole tenant, the resource or one above it; the flag that the permission requires must be on, and
    the limit must have something left. `context.reason` says which of these refuses first. With
    `context.consume`, which also needs `usage:write`, a yes has counted the amount.
    """
    return _evaluate([Question(**body)])[0]


@blp.post("/evaluations")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessQuestionsSchema)
@blp.doc(responses=answered(schemas.EVALUATIONS))
@refuses_with_400
@reads_primary
@has_past
def evaluate_several(body: dict[str, Json]) -> dict[str, Json]:
    """Decide up to 100 questions, in their order (AuthZEN).

    Without `evaluations` it is one question, answered as at `/access/v1/evaluation`.
    """
    answers = _evaluate(**body)
    return {"evaluations": answers} if "semantic" in body else answers[0]


def _evaluate(
    questions: list[Any], semantic: Semantic = Semantic.EXECUTE_ALL
) -> list[dict[str, Json]]:
    if any(isinstance(one, Question) and "consume" in one.context for one in questions):
        current_principal().check(Permission.USAGE_WRITE)
        if AS_OF in current_request().args:
            raise Invalid(value_error(["query", AS_OF], "cannot be given with context.consume"))
    verdicts = evaluate(questions, semantic, current_actor(), home_tenant_id())
    return [schemas.answer_of(verdict) for verdict in verdicts]


@blp.post("/search/subject")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessSubjectSearchSchema)
@blp.doc(responses=answered(schemas.RESULTS))
@refuses_with_400
@reads_primary
def find_subjects(body: dict[str, Json]) -> dict[str, Json]:
    """Find the subjects of a type that may do something with a resource (AuthZEN).

    A `user` is answered by the `idp_user_id`, or by the id where that is empty. A page can have fewer
    results than its limit, also none; `page.next_token` is empty on the last page.
    """
    return _search("subject", body)


@blp.post("/search/resource")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessResourceSearchSchema)
@blp.doc(responses=answered(schemas.RESULTS))
@refuses_with_400
@reads_primary
def find_resources(body: dict[str, Json]) -> dict[str, Json]:
    """Find the registered resources of a type with which a subject may do something (AuthZEN)."""
    return _search("resource", body)


@blp.post("/search/action")
@requires(Permission.ACCESS_READ)
@blp.arguments(schemas.AccessActionSearchSchema)
@blp.doc(responses=answered(schemas.RESULTS))
@refuses_with_400
@reads_primary
def find_actions(body: dict[str, Json]) -> dict[str, Json]:
    """Find the product's permissions that a subject has on a resource (AuthZEN)."""
    return _search("action", body)


def _search(kind: str, body: dict[str, Json]) -> dict[str, Json]:
    page = body.pop("page")
    mark = hashlib.sha256(f"{kind} {body}".encode()).hexdigest()[:16]
    after, limit = _place(kind, page["token"], mark), min(page["limit"], schemas.MAX_PAGE)
    found, last = search(kind, Question(**body), after=after, limit=limit, home=home_tenant_id())
    results = [
        {"name": one.id} if kind == "action" else {"type": one.type, "id": one.id} for one in found
    ]
    token = "" if last is None else pack(mark, last)
    return {"page": {"next_token": token, "count": len(results)}, "results": results}


def _place(kind: str, token: str, mark: str) -> str:
    """The place in a token; "" if there is none. Raises Invalid for a token of another search."""
    if not token:
        return ""
    loc, reason = (
        ("body", "page", "token"),
        "this is not the next_token of a page of the same search",
    )
    found, place = unpack(token, str, str, loc=loc, reason=reason)
    if found != mark or (kind == "subject" and place and not id_or_none(place)):
        raise Invalid(value_error(loc, reason, token))
    return str(place)


@metadata.get("/.well-known/authzen-configuration")
@public
@metadata.doc(responses=answered(schemas.METADATA))
def get_metadata() -> dict[str, Json]:
    """Get the addresses of AuthZEN's endpoints."""
    base = own_address(current_request())
    names = {"access": ("evaluation", "evaluations"), "search": ("subject", "resource", "action")}
    found = {f"access_{name}_endpoint": f"{base}/access/v1/{name}" for name in names["access"]}
    found |= {
        f"search_{name}_endpoint": f"{base}/access/v1/search/{name}" for name in names["search"]
    }
    return {"policy_decision_point": base, **found}
