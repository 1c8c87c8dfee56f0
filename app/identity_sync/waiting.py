"""Objects of an identity provider whose counterparts have not arrived yet.

A membership waits for its organization or its user, as an accepted invitation does, and an SSO
connection for its organization. A person without any membership is set aside.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sqlalchemy import ARRAY, Column, Text, Uuid, text

from app.core.db.models import Moment
from app.core.db.pages import Page, Paging, paginate

# The id, which only orders and pages, is made of the object's key. Nothing is missing where the
# counterpart has just come. An event of a role may come before that of its member.
WAITING: Any = SimpleNamespace(
    __table__=text("""
        SELECT CAST(md5(concat_ws(' ', source, kind, object_id)) AS uuid) AS id, created_at,
            source, kind, object_id, organization_id,
            CASE kind WHEN 'user' THEN object_id ELSE user_id END AS user_id,
            CASE kind WHEN 'user' THEN ARRAY['membership'] ELSE array_remove(ARRAY[
                CASE WHEN NOT EXISTS (
                    SELECT FROM tenants WHERE idp_org_id = one.organization_id
                ) THEN 'organization' END,
                CASE WHEN NOT (kind IN ('invitation', 'sso_connection') AND user_id IS NULL)
                AND NOT EXISTS (
                    SELECT FROM identity_objects AS person WHERE person.source = one.source
                        AND person.kind = 'user' AND person.object_id = one.user_id
                        AND (person.state -> 'attributes' -> 'seen' IS NOT NULL
                            OR person.state -> 'attributes' -> 'email' IS NOT NULL)
                ) AND NOT EXISTS (
                    SELECT FROM users JOIN tenants ON tenants.id = users.tenant_id
                    WHERE tenants.idp_org_id = one.organization_id
                        AND users.idp_user_id = one.user_id
                ) THEN 'user' END,
                CASE WHEN state ->> 'place' IS NULL THEN 'membership' END
            ], NULL) END AS missing
        FROM identity_objects AS one WHERE is_waiting AND NOT is_deleted
    """)
    .columns(
        Column("id", Uuid),
        Column("created_at", Moment),
        *(Column(name, Text) for name in ("source", "kind", "object_id")),
        *(Column(name, Text) for name in ("organization_id", "user_id")),
        Column("missing", ARRAY(Text)),
    )
    .subquery("waiting_identities")
)


def list_waiting(paging: Paging) -> Page:
    """One page of what waits, in the order in which the provider first sent it."""
    return paginate(WAITING, paging)
