"""Requests and answers of AuthZEN's Authorization API 1.0. Unknown fields are ignored."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.access.evaluating import Semantic, Verdict
from app.access.questions import Question, Thing
from app.access.steps import StepName, failed
from app.core.errors import Entry, Invalid
from app.core.json_text import Json
from app.core.validation.fields import AnyJson, Choice, Int, JsonObject, ListOf, Nested, Str
from app.core.validation.messages import refused, under
from app.core.validation.scalars import MAX_NAME
from app.core.validation.schemas import Schema
from app.usage.schemas import MAX_AMOUNT, MAX_ENTRIES, DecisionSchema

MAX_ID = 1024
MAX_PROPERTIES = 100
MAX_PAGE = 1000


class Properties(JsonObject):
    """An object with a bounded number of keys; ``consume`` of a context is checked too."""

    keywords = {"additionalProperties": True, "maxProperties": MAX_PROPERTIES}

    def from_json(self, value: object) -> dict[str, Any]:
        found = super().from_json(value)
        if len(found) > MAX_PROPERTIES:
            bound = {"field_type": "Dictionary", "max_length": MAX_PROPERTIES}
            raise Invalid(refused("too_long", (), value, actual_length=len(found), **bound))
        if self.name == "context" and "consume" in found:
            try:
                found["consume"] = CONSUMPTION.load(found["consume"])
            except Invalid as fault:
                raise Invalid(*under("consume", fault.errors)) from None
        return found


class Unread(AnyJson):
    """Any JSON value; what reads a part of it checks that part."""

    def from_json(self, value: object) -> object:
        return value


class Lenient(Schema):
    """A schema that ignores unknown fields."""

    class Meta:
        unknown = ma.EXCLUDE

    examples = {"type": "user", "id": "ada@example.com", "name": "invoices:approve", "token": ""}
    examples |= {"feature": "invoices", "properties": {"status": "active"}, "context": {}}


class AccessConsumptionSchema(Lenient):
    """What a yes counts; see `POST /v1/usage/consume`."""

    feature = Str(required=True, description="The key of a limit of the plan.")
    amount = Int(ge=1, le=MAX_AMOUNT, load_default=1, description="How much.")


CONSUMPTION = AccessConsumptionSchema()


class AccessTypeSchema(Lenient):
    """A kind of thing that is searched for."""

    type = Str(required=True, max_length=MAX_NAME, description="The kind of thing.")
    properties = Properties(load_default=dict, description="More, for rules of flags.")


class AccessThingSchema(AccessTypeSchema):
    """A subject or a resource.

    A subject is a `user` (the id here, the `idp_user_id` or the address), an `identity` (the
    `idp_user_id`), an `email` or an `api_key` (the id). Other types are answered with a no.
    """

    id = Str(required=True, max_length=MAX_ID, description="Which one of its type.")


class AccessActionSchema(Lenient):
    """What the subject wants to do."""

    name = Str(required=True, max_length=MAX_NAME, description="A permission, in any case.")
    properties = Properties(load_default=dict, description="More, for rules of flags.")


class Which(Nested):
    """A subject, an action or a resource, which loads as a :class:`Thing`."""

    def from_json(self, value: Any) -> Thing:
        found = super().from_json(value)
        return Thing(found.pop("name", ""), **found) if "name" in found else Thing(**found)


class AccessQuestionSchema(Lenient):
    """One question: may the subject do this with the resource?"""

    subject = Which(AccessThingSchema, required=True, description="Who.")
    action = Which(AccessActionSchema, required=True, description="Does what.")
    resource = Which(AccessThingSchema, required=True, description="With what.")
    context = Properties(
        load_default=dict,
        description="More, for rules of flags. With `consume` (`feature`, `amount`) a yes has counted"
        " this, and what does not fit is a no. A platform credential names the tenant as `tenant_id`"
        " here, or in the resource's properties.",
    )


class AccessOptionsSchema(Lenient):
    """How several questions are answered."""

    evaluations_semantic = Choice(
        Semantic, load_default=Semantic.EXECUTE_ALL, description="Where the answers end."
    )


class AccessQuestionsSchema(AccessQuestionSchema):
    """Several questions; what one lacks is taken from here. Without `evaluations` it is one."""

    evaluations = ListOf(
        Unread(),
        metadata={"maxItems": MAX_ENTRIES},
        load_default=list,
        description="The questions. One that is not valid is answered with a no.",
    )
    options = Nested(
        AccessOptionsSchema,
        load_default=lambda: AccessOptionsSchema().load({}),
        description="How they are answered.",
    )

    def load(self, data: object, *, unknown: str | None = None) -> dict[str, Any]:  # type: ignore[override]  # as its base
        """The questions, with refusals in place of invalid questions, and the ``semantic``."""
        if not isinstance(data, dict) or data.get("evaluations") in (None, []):
            return {"questions": [Question(**ONE.load(data))]}
        sections = {name: data[name] for name in ("evaluations", "options") if name in data}
        loaded = SECTIONS.load(sections)
        known: dict[tuple[str, int], Any] = {}
        questions = [_merged(each, data, known) for each in loaded["evaluations"]]
        return {"questions": questions, "semantic": loaded["options"]["evaluations_semantic"]}


ONE = AccessQuestionSchema()
SECTIONS = Lenient.from_dict(
    {name: AccessQuestionsSchema().fields[name] for name in ("evaluations", "options")}
)()


def _merged(
    entry: Any, defaults: dict[str, Any], known: dict[tuple[str, int], Any]
) -> Question | Verdict:
    """The question of an entry, or its refusal; ``known`` has what was loaded before."""
    if not isinstance(entry, dict):
        return _invalid(refused("model_attributes_type", (), entry))
    values = {}
    for name, (_, field) in ONE.inputs.items():
        given = entry.get(name, defaults.get(name, ma.missing))
        if given is ma.missing and field.required:
            return _invalid(refused("missing", (name,), None))
        if given is not ma.missing:
            place = (name, id(given))
            if place not in known:
                try:
                    known[place] = field.deserialize(given)
                except Invalid as fault:
                    return _invalid(*under(name, fault.errors))
            values[name] = known[place]
    return Question(**values)


def _invalid(*errors: Entry) -> Verdict:
    found = f"{'.'.join(map(str, errors[0]['loc'])) or 'The entry'}: {errors[0]['msg']}."
    return Verdict(failed(StepName.REQUEST, found, "", code="invalid_request"))


class AccessPageSchema(Lenient):
    """Which part of the results is wanted."""

    token = Str(load_default="", max_length=4096, description="`next_token` of the page before.")
    limit = Int(ge=0, load_default=100, description=f"How many; at most {MAX_PAGE} are answered.")


class AccessSubjectSearchSchema(AccessQuestionSchema):
    """Which subjects of a type may do this with the resource?"""

    subject = Which(AccessTypeSchema, required=True, description="Their type.")
    page = Nested(
        AccessPageSchema,
        load_default=lambda: AccessPageSchema().load({}),
        description="A part of them.",
    )


class AccessResourceSearchSchema(AccessSubjectSearchSchema):
    """With which resources of a type may the subject do this?"""

    subject = Which(AccessThingSchema, required=True, description="Who.")
    resource = Which(AccessTypeSchema, required=True, description="Their type.")


class AccessActionSearchSchema(AccessResourceSearchSchema):
    """What may the subject do with the resource?"""

    action = Which(AccessActionSchema, load_default=Thing, description="Ignored.")
    resource = Which(AccessThingSchema, required=True, description="With what.")


def answer_of(verdict: Verdict) -> dict[str, Json]:
    """A verdict as :data:`EVALUATION` describes it."""
    context: dict[str, Json] = {}
    if (step := verdict.refused) is not None:
        named = {"code": step.code, "step": step.step, "row_id": step.row_id}
        context["reason"] = {**named, "sentence": step.found}
    if verdict.usage is not None:
        context["usage"] = verdict.usage
    answer: dict[str, Json] = {"decision": verdict.refused is None}
    return {**answer, "context": context} if context else answer


def _described(description: str, type_: Json = "string", **keywords: Json) -> dict[str, Json]:
    return {"type": type_, "description": description, **keywords}


def _object(description: str, **properties: Json) -> dict[str, Json]:
    return _described(description, "object", properties=properties)


EVALUATION = _object(
    "A decision.",
    decision=_described("Whether the subject may do this now.", "boolean"),
    context=_object(
        "The reason of a no, and the limit after what was consumed or refused.",
        reason=_object(
            "The first step that refuses.",
            code=_described("The reason, for programs."),
            step=_described("The step."),
            row_id=_described("The row that it looked at.", ["string", "null"]),
            sentence=_described("The reason, for people."),
        ),
        usage={"allOf": [DecisionSchema], "description": "The limit after what was counted."},
    ),
)
EVALUATIONS = _object(
    "The decisions, in the order of the questions; of a single question only its own.",
    evaluations=_described("The decisions.", "array", items=EVALUATION),
    **EVALUATION["properties"],
)
RESULTS = _object(
    "A page of results.",
    page=_object(
        "The page.",
        next_token=_described("Give it as `page.token` for the next page; empty on the last."),
        count=_described("How many results it has.", "integer"),
    ),
    results=_described(
        "Subjects or resources (`type`, `id`) or actions (`name`).",
        "array",
        items={"type": "object"},
    ),
)
METADATA = _object("Addresses, and what is at them.")
