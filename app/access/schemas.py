"""The request and the answer of /v1/access."""

from __future__ import annotations

from collections.abc import Iterator

from app.access.authzen_schemas import MAX_ID
from app.access.steps import Outcome, StepName
from app.core.errors import Entry, value_error
from app.core.validation.fields import Bool, Choice, Int, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema

CREDENTIALS = ("subject", "user_id", "key_id")
MAX_CLAIM = 255
ONE_OF = "Exactly one of `subject`, `user_id` and `key_id` is needed."


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "permission": "billing:read",
        "resource_type": "project",
        "resource_id": "apollo",
        "subject": "user_01JZ4M",
        "org_id": "org_01JZ4K",
        "allowed": False,
        "status": 403,
        "reason": "permission_denied",
        "decided_by": "permission",
        "step": "permission",
        "outcome": "failed",
        "found": "The role member does not have the permission billing:read.",
        "change": "Give the member a role that has it: owner, admin, billing.",
        "row_id": None,
    }


class AccessQuerySchema(Documented):
    """Whose access to what."""

    permission = Str(
        required=True,
        max_length=MAX_CLAIM,
        description="The permission that is asked about: the service's, or one of the product.",
    )
    resource_type = Str(max_length=MAX_CLAIM, description="The type of a registered resource.")
    resource_id = Str(
        max_length=MAX_ID,
        description="The resource on which the permission is asked about; with `resource_type`.",
    )
    subject = Str(
        min_length=1, max_length=MAX_CLAIM, description=f"The subject of a user token. {ONE_OF}"
    )
    user_id = Uuid(description="A user, as the subject of a token.")
    key_id = Uuid(description="An API key.")
    org_id = Str(
        min_length=1,
        max_length=MAX_CLAIM,
        description="The token's organization, an `idp_org_id`. Without it and `tenant_id` "
        "it is the user's, or the tenant credential's own; else the token has none.",
    )
    tenant_id = Uuid(description="A tenant, instead of its `org_id`.")

    def rules(self, values: dict[str, object]) -> Iterator[Entry]:
        given = [name for name in CREDENTIALS if name in values]
        if len(given) != 1:
            reason = "give exactly one of subject, user_id and key_id"
            yield value_error(["query", given[1] if given else "subject"], reason)
        if ("resource_type" in values) != ("resource_id" in values):
            yield value_error(["query", "resource_id"], "give resource_type and resource_id")
        if "org_id" in values and "tenant_id" in values:
            yield value_error(["query", "tenant_id"], "give either org_id or tenant_id")


class StepSchema(Documented, AnswerSchema):
    """One step of the decision."""

    step = Choice(StepName, description="The step's name.")
    outcome = Choice(Outcome, description="Skipped: the step does not matter to the decision.")
    found = Str(description="What the step found, in one sentence.")
    change = Str(description="What would change a failed step; else empty.")
    row_id = Uuid(
        nullable=True,
        description="The tenant, user, membership, assignment of a role or API key that was found.",
    )


class ExplanationSchema(Documented, AnswerSchema):
    """The answer that a request would get, and the steps that lead to it."""

    permission = Str(description="The permission that is asked about.")
    allowed = Bool(description="Whether the request would be allowed.")
    status = Int(description="200, or the status of the refusal: 401 or 403.")
    reason = Str(description="The refusal's code, as the log names it; empty where allowed.")
    decided_by = Choice(StepName, description="The step that decides.")
    tenant_id = Uuid(nullable=True, description="The tenant of the request; null without one.")
    steps = ListOf(Nested(StepSchema), description="The steps, in their order.")
