"""The answer of /v1/tenants/{id}/changes."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, JsonObject, ListOf, Str
from app.core.validation.schemas import AnswerSchema, Schema


class ChangesQuerySchema(Schema):
    """The two moments, each a time (RFC 3339) or a position of the event feed."""

    examples = {"since": "2026-11-20T17:00:00Z", "until": "2026-11-23T08:00:00Z"}

    since = Str(
        data_key="from",
        required=True,
        description="Changes after this moment, which is not before the tenant's creation.",
    )
    until = Str(data_key="to", description="Changes up to this moment; without it, until now.")


class ChangedRowSchema(AnswerSchema):
    """A row that differs between two moments, or was changed and changed back."""

    has_pages = False
    examples = {
        "target_type": "user",
        "target_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "actions": ["user.updated"],
        "actors": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"],
        "reasons": ["rewind"],
        "changes": {"first_name": {"before": "Ada", "after": "Augusta"}},
    }

    target_type = Str(description="The type of the row, such as `user`.")
    target_id = Str(description="The row's id; of a resource its type, `/` and its id.")
    first_at = AwareDateTime(description="The first change of the row in this time.")
    last_at = AwareDateTime(description="The last one.")
    actions = ListOf(Str(), description="What was done.")
    actors = ListOf(
        Str(), description="Who did it, the last one first, named as in the audit trail."
    )
    reasons = ListOf(Str(), description="`rewind` where a rewind has changed the row.")
    changes = JsonObject(
        description="Each field that differs, with its value `before` and `after`: null where the"
        " row did not exist. Empty for actions that only say something about it, as `user.exported`."
    )
