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


@page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/access")
def show_access(tenant_id: UUID, user_id: UUID) -> Shown:
    """Show the roles of a person, and with ``permission`` whether they may, step by step."""
    then, can = past(f"/v1/users/{user_id}"), current_session().can
    include = "extra_roles" if can(Permission.ROLES_READ) and not then.moment else None
    memberships = then.rows("/v1/memberships/tenant", tenant_id, user_id=user_id, include=include)
    membership = memberships[0] if memberships else None
    if membership and then.moment:
        of = {"membership_id": membership["id"], "limit": api.MOST_OF_A_PAGE}
        membership["extra_roles"] = then.rows(ASSIGNMENTS, tenant_id, **of)
    values = {"user": then.row, "membership": membership, **then.values}
    names = ("permission", "resource_type", "resource_id")
    asked = {name: request.args.get(name, "").strip() for name in names}
    if can(Permission.AUDIT_READ):
        found = then.rows(PERMISSIONS)
        values["permissions"] = [one["key"] for one in found] if found else sorted(TENANT)
        if asked["permission"]:
            given = {name: text for name, text in asked.items() if text}
            query = {"user_id": user_id, "tenant_id": tenant_id, "as_of": then.moment or None}
            answer = api.call("GET", "/v1/access/explain", query={**query, **given})
            values["explanation"] = answer.data if answer.is_ok else None
            values["refusal"] = answer.refusal
    return render("access", words.person(then.row), asked=asked, **values)
