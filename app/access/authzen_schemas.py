"""Requests and answers of AuthZEN's Authorization API 1.0. Unknown fields are ignored."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.access.evaluating import Semantic
from app.access.judging import Verdict
from app.access.questions import Question, Thing
from app.access.steps import StepName, failed
from app.core.errors import Entry, Invalid
from app.core.json_text import Json
from app.core.validation.fields import AnyJson, Bool, Choice, Int, JsonObject, ListOf, Nested, Str
from app.core.validation.messages import refused, under
from app.core.validation.scalars import MAX_NAME
from app.core.validation.schemas import AnswerSchema, Schema
from app.usage.schemas import DecisionSchema

MAX_ID = 1024
MAX_PROPERTIES = 100
MAX_ENTRIES = 100
MAX_PAGE = 1000
MAX_AMOUNT = 10**15


class Properties(JsonObject):
    """An object with a bounded number of keys."""

    keywords = {"additionalProperties": True, "maxProperties": MAX_PROPERTIES}

    def from_json(self, value: object) -> dict[str, Any]:
        if isinstance(value, dict) and len(value) > MAX_PROPERTIES:
            counted = {"field_type": "Dictionary", "actual_length": len(value)}
            raise Invalid(refused("too_long", (), value, max_length=MAX_PROPERTIES, **counted))
        return super().from_json(value)


class Lenient(Schema):
    """A schema that ignores unknown fields; examples of all fields here."""

    class Meta:
        unknown = ma.EXCLUDE

    examples = {
        "subject": {"type": "user", "id": "ada@example.com"},
        "action": {"name": "invoices:approve"},
        "resource": {"type": "project", "id": "apollo"},
        "type": "user",
        "id": "ada@example.com",
        "name": "invoices:approve",
        "properties": {"status": "active"},
        "context": {"ip": "192.0.2.7"},
        "evaluations": [{"resource": {"type": "project", "id": "apollo"}}],
        "feature": "invoices",
        "token": "WyI4ZjE0ZTQ1ZiIsICJhcG9sbG8iXQ==",
        "next_token": "",
        "code": "permission_denied",
        "row": None,
        "sentence": "No role gives the subject the permission invoices:approve here.",
    }


TYPE = Str(required=True, max_length=MAX_NAME, description="The kind of thing.")
OWN_PROPERTIES = Properties(
    load_default=dict, description="More about it; rules of flags can compare texts and numbers."
)


class AccessTypeSchema(Lenient):
    """The kind of thing that is searched for; an `id` is ignored."""

    type = TYPE
    properties = OWN_PROPERTIES


class AccessThingSchema(AccessTypeSchema):
    """A subject or a resource.

    A subject's type is `user` (its id here, its `idp_user_id` or its address), `identity` (the
    `idp_user_id`), `email` or `api_key` (its id); another one gets a no.
    """

    id = Str(required=True, max_length=MAX_ID, description="Which one of its type.")


class AccessActionSchema(Lenient):
    """What the subject wants to do."""

    name = Str(
        required=True,
        max_length=MAX_NAME,
        description="The key of a permission, in upper or lower case.",
    )
    properties = OWN_PROPERTIES


class AccessConsumptionSchema(Lenient):
    """What a yes counts; see `POST /v1/usage/consume`."""

    feature = Str(required=True, description="The key of a limit of the plan.")
    amount = Int(ge=1, le=MAX_AMOUNT, load_default=1, description="How much is counted.")


class Context(Properties):
    """The context, whose ``consume`` is checked."""

    def from_json(self, value: object) -> dict[str, Any]:
        found = super().from_json(value)
        if "consume" not in found:
            return found
        try:
            return {**found, "consume": CONSUME.load(found["consume"])}
        except Invalid as fault:
            raise Invalid(*under("consume", fault.errors)) from None


CONSUME = AccessConsumptionSchema()
CONTEXT = Context(
    load_default=dict,
    description="The circumstances; rules of flags can compare texts and numbers. With `consume`"
    " (`feature`, `amount`) a yes has counted this, and is a no if it does not fit. A platform"
    " credential names the tenant as `tenant_id` here, or in the resource's properties.",
)


class Which(Nested):
    """A subject, an action or a resource, which loads as a :class:`Thing`."""

    def from_json(self, value: Any) -> Thing:
        found = super().from_json(value)
        return Thing(
            found.get("id", found.get("name", "")), found.get("type", ""), found["properties"]
        )


class AccessQuestionSchema(Lenient):
    """One question: may the subject do this with the resource?"""

    subject = Which(AccessThingSchema, required=True, description="Who.")
    action = Which(AccessActionSchema, required=True, description="Does what.")
    resource = Which(AccessThingSchema, required=True, description="With what.")
    context = CONTEXT


class AccessOptionsSchema(Lenient):
    """How several questions are answered."""

    evaluations_semantic = Choice(
        Semantic,
        load_default=Semantic.EXECUTE_ALL,
        description="Whether all are answered, or only those up to the first no or yes.",
    )


class AccessQuestionsSchema(Lenient):
    """Several questions; without `evaluations` one. What one lacks is taken from the top level."""

    evaluations = ListOf(
        AnyJson(),
        metadata={"maxItems": MAX_ENTRIES},
        load_default=list,
        description="The questions. One that is not valid is answered with a no.",
    )
    options = Nested(
        AccessOptionsSchema,
        load_default=lambda: AccessOptionsSchema().load({}),
        description="Options.",
    )
    subject = Which(AccessThingSchema, description="Who.")
    action = Which(AccessActionSchema, description="Does what.")
    resource = Which(AccessThingSchema, description="With what.")
    context = CONTEXT

    def load(self, data: object, *, unknown: str | None = None) -> dict[str, Any]:  # type: ignore[override]  # as its base
        """The ``questions`` and the ``semantic``; of a single question only that.

        A refusal is in the place of a question that is not valid.
        """
        if not isinstance(data, dict) or data.get("evaluations") in (None, []):
            return {"questions": [Question(**ONE.load(data))]}
        sections = {name: data[name] for name in ("evaluations", "options") if name in data}
        loaded = super().load(sections)
        known: dict[tuple[str, int], Any] = {}
        return {
            "questions": [_merged(each, data, known) for each in loaded["evaluations"]],
            "semantic": loaded["options"]["evaluations_semantic"],
        }


ONE = AccessQuestionSchema()


def _merged(
    entry: Any, defaults: dict[str, Any], known: dict[tuple[str, int], Any]
) -> Question | Verdict:
    """The question of an entry, or its refusal; ``known`` has what was loaded before."""
    if not isinstance(entry, dict):
        return _invalid(refused("model_attributes_type", (), entry))
    values = {}
    for name, (_, field) in ONE.inputs.items():
        given = entry.get(name, defaults.get(name, ma.missing))
        if given is ma.missing:
            if field.required:
                return _invalid(refused("missing", (name,), None))
            continue
        place = (name, id(given))
        if place not in known:
            try:
                known[place] = field.deserialize(given)
            except Invalid as fault:
                known[place] = _invalid(*under(name, fault.errors))
        loaded = known[place]
        if isinstance(loaded, Verdict):
            return loaded
        values[name] = loaded
    return Question(**values)


def _invalid(*errors: Entry) -> Verdict:
    place, reason = ".".join(map(str, errors[0]["loc"])), errors[0]["msg"]
    found = f"{place or 'The entry'}: {reason}."
    return Verdict([failed(StepName.REQUEST, found, "Correct the entry.", code="invalid_request")])


class AccessPageSchema(Lenient):
    """Which part of the results is wanted."""

    token = Str(load_default="", max_length=4096, description="`next_token` of the page before.")
    limit = Int(ge=0, load_default=100, description=f"How many; at most {MAX_PAGE} are answered.")


class AccessSearchSchema(AccessQuestionSchema):
    """Page and context of a search."""

    page = Nested(
        AccessPageSchema,
        load_default=lambda: AccessPageSchema().load({}),
        description="A part of them.",
    )


class AccessSubjectSearchSchema(AccessSearchSchema):
    """Which subjects of a type may do this with the resource?"""

    subject = Which(AccessTypeSchema, required=True, description="The type that is searched for.")


class AccessResourceSearchSchema(AccessSearchSchema):
    """With which resources of a type may the subject do this?"""

    resource = Which(AccessTypeSchema, required=True, description="The type that is searched for.")


class AccessActionSearchSchema(AccessSearchSchema):
    """What may the subject do with the resource?"""

    action = Which(AccessActionSchema, load_default=lambda: Thing(""), description="Ignored.")


class AccessReasonSchema(Lenient, AnswerSchema):
    """Why the answer is no: the first step that refuses."""

    code = Str(description="The reason, for programs.")
    step = Choice(StepName, description="The step that refuses.")
    row_id = Str(nullable=True, description="The id of the row that decides, where there is one.")
    sentence = Str(description="The reason, for people.")


class AccessAnswerContextSchema(Lenient, AnswerSchema):
    """More about a decision."""

    optional = ("reason", "usage")

    reason = Nested(AccessReasonSchema, description="Why it is a no.")
    usage = Nested(DecisionSchema, description="The limit after what was consumed, or refused.")


class AccessEvaluationSchema(Lenient, AnswerSchema):
    """A decision."""

    optional = ("context",)

    decision = Bool(description="Whether the subject may do this now.")
    context = Nested(
        AccessAnswerContextSchema, description="The reason of a no; what was consumed."
    )


def answer_of(verdict: Verdict) -> dict[str, Json]:
    """A verdict as :class:`AccessEvaluationSchema` describes it."""
    refusal = verdict.refusal
    context: dict[str, Json] = {}
    if refusal is not None:
        context["reason"] = {
            "code": refusal.code,
            "step": refusal.step,
            "row_id": refusal.row_id,
            "sentence": refusal.found,
        }
    if verdict.usage is not None:
        context["usage"] = verdict.usage
    answer: dict[str, Json] = {"decision": refusal is None}
    return {**answer, "context": context} if context else answer


class AccessResultPageSchema(Lenient, AnswerSchema):
    """The page of the results."""

    next_token = Str(description="Give it as `page.token` for the next page; empty on the last.")
    count = Int(description="How many results the page has.")


class AccessFoundSchema(Lenient, AnswerSchema):
    """A subject or a resource that was found."""

    type = Str(description="Its kind.")
    id = Str(description="Which one of its type.")


class AccessThingsSchema(Lenient, AnswerSchema):
    """The subjects or resources of a page."""

    page = Nested(AccessResultPageSchema, description="The page.")
    results = ListOf(Nested(AccessFoundSchema), description="Those to which the answer is yes.")


class AccessFoundActionSchema(Lenient, AnswerSchema):
    """An action that was found."""

    name = Str(description="The key of the permission.")


class AccessActionsSchema(Lenient, AnswerSchema):
    """The actions of a page."""

    page = Nested(AccessResultPageSchema, description="The page.")
    results = ListOf(Nested(AccessFoundActionSchema), description="What the subject may do.")
