"""What a person may do: their roles, and why something is allowed or refused."""

from __future__ import annotations

from uuid import UUID

from flask import request

from app.auth.permissions import TENANT, Permission
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, page, render
from app.console.pages.permissions import PERMISSIONS
from app.core.json_text import Json


@page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/access")
def show_access(tenant_id: UUID, user_id: UUID) -> Shown:
    """Show the roles of a person, and with ``permission`` whether they may, step by step."""
    user = api.get(f"/v1/users/{user_id}").data
    memberships = api.find("/v1/memberships/tenant", user_id=user_id, tenant_id=tenant_id)
    membership = next(iter(memberships.data), None) if memberships else None
    query = {"membership_id": membership["id"], "limit": api.MOST_OF_A_PAGE} if membership else {}
    assignments = api.find("/v1/role-assignments", tenant_id=tenant_id, **query) if query else None
    values = {"user": user, "membership": membership, **explained(tenant_id, user_id)}
    given = assignments.data if assignments else []
    return render("access", words.person(user), assignments=given, **values)


def explained(tenant_id: UUID, user_id: UUID | str) -> dict[str, Json]:
    """What was asked of a person's access, and the answer with its steps."""
    names = ("permission", "resource_type", "resource_id")
    asked = {name: request.args.get(name, "").strip() for name in names}
    values: dict[str, Json] = {"asked": asked, "permissions": [], "explanation": None}
    if not current_session().can(Permission.AUDIT_READ):
        return values
    found = api.find(PERMISSIONS)
    values["permissions"] = [one["key"] for one in found.data] if found else sorted(TENANT)
    if asked["permission"]:
        given = {name: text for name, text in asked.items() if text}
        query = {"user_id": user_id, "tenant_id": tenant_id, **given}
        answer = api.call("GET", "/v1/access/explain", query=query)
        values["explanation"] = answer.data if answer.is_ok else None
        values["refusal"] = answer.refusal
    return values
