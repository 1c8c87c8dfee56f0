"""``include=extra_roles``: what assignments give a member, directly or by a group of the directory."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import ARRAY, bindparam, text

from app.auth.permissions import Permission
from app.core.db.statements import Statement
from app.core.http.includes import related_lists
from app.core.validation.fields import AwareDateTime, JsonObject, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema

MAX_SHOWN = 100  # of a member
# Each of one kind of target, in the order of its index.
_FIRST = f"""
    SELECT * FROM role_assignments
    WHERE tenant_id = m.tenant_id AND {{}} AND (expires_at IS NULL OR expires_at > now())
    ORDER BY created_at, id LIMIT {MAX_SHOWN}
"""  # noqa: S608 - no input
FIND = Statement(
    "memberships.find_extra_roles",
    text(f"""
    SELECT m.id AS membership_id, extra.* FROM memberships m CROSS JOIN LATERAL (
        SELECT a.id, r.key AS role, a.group_id, s.display_name AS group_name,
            CASE WHEN a.resource_id IS NOT NULL THEN
                json_build_object('type', a.resource_type, 'id', a.resource_id) END AS resource,
            a.expires_at, a.source, a.created_at
        FROM (
            ({_FIRST.format("membership_id = m.id")})
            UNION ALL
            SELECT a.* FROM scim_members own
            CROSS JOIN LATERAL ({_FIRST.format("group_id = own.group_id")}) a
            WHERE own.tenant_id = m.tenant_id AND own.user_id = m.user_id
        ) a
        JOIN roles r ON r.id = a.role_id
        LEFT JOIN scim_groups s ON s.tenant_id = a.tenant_id AND s.id = a.group_id
        ORDER BY a.created_at, a.id LIMIT {MAX_SHOWN}
    ) extra
    WHERE m.id = ANY (:keys)
    """).bindparams(bindparam("keys", type_=ARRAY(sa.Uuid))),  # noqa: S608 - no input
)


class ExtraRoleSchema(AnswerSchema):
    """A role that an assignment gives."""

    examples = {
        "role": "clerk",
        "group_name": "Finance",
        "resource": {"type": "project", "id": "apollo"},
        "source": "api",
    }

    id = Uuid(description="The id of the assignment; see `/v1/role-assignments`.")
    role = Str(description="The role's key.")
    group_id = Uuid(nullable=True, description="The directory's group that has it; else null.")
    group_name = Str(nullable=True, description="The name of that group.")
    resource = JsonObject(
        nullable=True,
        description="The `type` and `id` of what it holds for, and for all below; null: the tenant.",
    )
    expires_at = AwareDateTime(nullable=True, description="From then on it has no effect.")
    source = Str(description="Who made it: `api`, `idp` (the identity provider) or `scim`.")
    created_at = AwareDateTime()


EXTRA_ROLES = related_lists(
    "extra_roles",
    ListOf(
        Nested(ExtraRoleSchema),
        description="What the member has besides `role`: roles assigned to the membership, and to"
        f" groups of the directory in which the user is; the {MAX_SHOWN} oldest.",
    ),
    FIND,
    lambda row: row.id,
    Permission.ROLES_READ,
)
