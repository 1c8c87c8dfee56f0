"""The document of GET /v1/access/snapshot."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, Bool, JsonObject, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema

WHOLE_TENANT = "The resource, by `type` and `id`; null: the whole tenant."


class Documented(Schema):
    """An example of each field of the schemas here."""

    examples = {
        "tenant": {
            "id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
            "slug": "acme-ltd",
            "idp_org_id": "org_01JZ4K",
            "is_active": True,
            "facts": {"tenant.id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f", "tenant.plan": "growth"},
        },
        "stream": "/v1/access/events?tenant_id=01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "permissions": {"invoices:approve": {"requires_flag": "approvals", "requires_limit": None}},
        "permissions_": ["users:read"],
        "roles": {"clerk": ["invoices:approve"]},
        "flags": {"approvals": {"value": True, "rules": []}},
        "limits": {"invoices": True},
        "idp_user_id": "user_01JZ4M",
        "email": "ada@example.com",
        "membership": {
            "id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
            "role": "member",
            "is_active": True,
        },
        "meta_data": {"desk": "7"},
        "type": "invoice",
        "parent": {"type": "folder", "id": "2026"},
        "resource": {"type": "folder", "id": "2026"},
        "attributes": {"status": "open"},
        "role": "clerk",
    }


class SnapshotUserSchema(Documented, AnswerSchema):
    """A user, as a subject."""

    id = Uuid(description="The user.")
    idp_user_id = Str(description="Empty if the identity provider does not know the user.")
    email = Str(description="The address, as it is compared.")
    is_active = Bool(description="Whether the user is active.")
    membership = JsonObject(nullable=True, description="Its `id`, `role` and `is_active`, or null.")
    groups = ListOf(Uuid(), description="The directory's groups of the user.")
    meta_data = JsonObject(description="The keys that rules compare.")


class SnapshotKeySchema(Documented, AnswerSchema):
    """An API key, as a subject."""

    id = Uuid(description="The API key.")
    permissions_ = ListOf(Str(), data_key="permissions", description="Its own permissions.")
    expires_at = AwareDateTime(nullable=True, description="It cannot be used from then on.")
    is_active = Bool(description="Whether it was not revoked.")


class SnapshotResourceSchema(Documented, AnswerSchema):
    """A registered resource."""

    type = Str(description="The kind of thing.")
    id = Str(description="Which one of its type.")
    parent = JsonObject(nullable=True, description="Its `type` and `id`, or null.")
    attributes = JsonObject(description="Those that rules compare.")


class SnapshotAssignmentSchema(Documented, AnswerSchema):
    """An assignment; one of `membership_id`, `group_id` and `api_key_id` is not null."""

    id = Uuid(description="The assignment.")
    membership_id = Uuid(nullable=True, description="Whose role it is.")
    group_id = Uuid(nullable=True, description="A directory's group, whose members have the role.")
    api_key_id = Uuid(nullable=True, description="The API key that has the role.")
    role = Str(description="The role's key.")
    resource = JsonObject(nullable=True, description=WHOLE_TENANT)
    expires_at = AwareDateTime(nullable=True, description="It has no effect from then on.")


class SnapshotSchema(Documented, AnswerSchema):
    """All that the decisions of a tenant need."""

    tenant = JsonObject(description="The tenant; `facts` are its attributes that rules compare.")
    stream = Str(description="Where a stream tells that this has changed, relative to this URL.")
    permissions = JsonObject(description="All permissions, with the flag and limit they require.")
    roles = JsonObject(description="The permissions of each role, with inherited ones.")
    flags = JsonObject(description="Required flags: the first rule that matches, else `value`.")
    limits = JsonObject(description="Required limits: whether one unit would fit.")
    users = ListOf(Nested(SnapshotUserSchema), description="All; of equal subjects, the first.")
    api_keys = ListOf(Nested(SnapshotKeySchema), description="All of the tenant.")
    resources = ListOf(Nested(SnapshotResourceSchema), description="All that are registered.")
    assignments = ListOf(Nested(SnapshotAssignmentSchema), description="All of the tenant.")
