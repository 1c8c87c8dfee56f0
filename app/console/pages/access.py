"""A person's access: their roles, and why something is allowed or refused."""

from __future__ import annotations

from uuid import UUID

from flask import request

from app.auth.permissions import TENANT, Permission
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, page, render
from app.console.pages.history import past
from app.console.pages.permissions import PERMISSIONS
from app.console.pages.roles import ASSIGNMENTS
from app.core.json_text import Json


@page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/access")
def show_access(tenant_id: UUID, user_id: UUID) -> Shown:
    """Show the roles of a person, and with ``permission`` whether they may, step by step."""
    path, can = f"/v1/users/{user_id}", current_session().can
    then = past(path)
    user, as_of = (then.row, then.moment) if then else (api.get(path).data, None)
    query = {"user_id": user_id, "tenant_id": tenant_id, "as_of": as_of}
    include = "extra_roles" if can(Permission.ROLES_READ) and not then else None
    memberships = api.find("/v1/memberships/tenant", **query, include=include)
    membership = next(iter(memberships.data), None) if memberships else None
    if then and membership:
        of = {"membership_id": membership["id"], "limit": api.MOST_OF_A_PAGE}
        membership["extra_roles"] = then.rows(ASSIGNMENTS, tenant_id, **of)
    values: dict[str, Json] = {"membership": membership}
    names = ("permission", "resource_type", "resource_id")
    asked = {name: request.args.get(name, "").strip() for name in names}
    if can(Permission.AUDIT_READ):
        found = api.find(PERMISSIONS, as_of=as_of)
        values["permissions"] = [one["key"] for one in found.data] if found else sorted(TENANT)
        if asked["permission"]:
            given = {name: text for name, text in asked.items() if text}
            answer = api.call("GET", "/v1/access/explain", query={**query, **given})
            values["explanation"] = answer.data if answer.is_ok else None
            values["refusal"] = answer.refusal
    values |= then.values if then else {}
    return render("access", words.person(user), user=user, asked=asked, **values)
