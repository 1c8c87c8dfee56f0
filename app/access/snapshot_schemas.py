"""The document of GET /v1/access/snapshot."""

from __future__ import annotations

from app.core.validation.fields import JsonObject, ListOf, Str
from app.core.validation.schemas import AnswerSchema

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"
USER = {"id": ID, "idp_user_id": "user_01JZ4M", "email": "ada@example.com", "is_active": True}
MEMBER = {"membership": {"id": ID, "role": "member", "is_active": True}, "groups": []}
FOLDER = {"type": "folder", "id": "2026"}
ASSIGNMENT = {"id": ID, "membership_id": ID, "group_id": None, "api_key_id": None, "role": "clerk"}


class SnapshotSchema(AnswerSchema):
    """All that the decisions of a tenant need."""

    examples = {
        "tenant": {
            "id": ID,
            "slug": "acme",
            "idp_org_id": "org_01",
            "is_active": True,
            "facts": {},
        },
        "stream": f"/v1/access/events?tenant_id={ID}",
        "permissions": {"invoices:approve": {"requires_flag": "approvals", "requires_limit": None}},
        "roles": {"clerk": ["invoices:approve"]},
        "flags": {"approvals": {"value": True, "rules": []}},
        "limits": {"invoices": True},
        "users": [{**USER, **MEMBER, "meta_data": {"desk": "7"}}],
        "api_keys": [{"id": ID, "permissions": [], "expires_at": None, "is_active": True}],
        "resources": [
            {"type": "invoice", "id": "17", "parent": FOLDER, "attributes": {"status": "open"}}
        ],
        "assignments": [{**ASSIGNMENT, "resource": FOLDER, "expires_at": None}],
    }

    tenant = JsonObject(description="The tenant; `facts` are its attributes that rules compare.")
    stream = Str(description="Where a stream tells that this has changed, relative to this URL.")
    permissions = JsonObject(description="All permissions, with the flag and limit they require.")
    roles = JsonObject(description="The permissions of each role, with inherited ones.")
    flags = JsonObject(description="Required flags: the first rule that matches, else `value`.")
    limits = JsonObject(description="Required limits: whether one unit would fit.")
    users = ListOf(
        JsonObject(),
        description="Subjects; the first of several that match counts. `email` is as it is compared,"
        " `meta_data` has the keys that rules compare, `membership` can be null.",
    )
    api_keys = ListOf(JsonObject(), description="Subjects; one that was revoked is not active.")
    resources = ListOf(
        JsonObject(), description="Registered ones, with the `attributes` that rules compare."
    )
    assignments = ListOf(
        JsonObject(),
        description="Of a membership, the members of a directory's group, or an API key; without a"
        " `resource` for the whole tenant. They have no effect from `expires_at` on.",
    )
