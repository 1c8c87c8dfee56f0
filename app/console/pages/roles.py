"""Roles: a matrix of their permissions, and a page for each role with its holders."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from uuid import UUID

from flask import redirect, request, url_for

from app.auth.permissions import Permission, Role
from app.console import api
from app.console.access import current_session, safe_target
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Choices, Field, choices, moment_field
from app.console.forms import Form, row_form
from app.console.lists import list_rows, show_list
from app.console.next_page import set_notice
from app.console.pages.common import MemberName, recent_history
from app.console.pages.permissions import PERMISSIONS
from app.core.json_text import Json

ROLES, ASSIGNMENTS = "/v1/roles", "/v1/role-assignments"
PLACE = "/roles/<uuid:role_id>"
COLUMNS = "id target_name membership_id group_id api_key_id resource source expires_at created_at"
MOST = 2_000  # boxes of a page; of more, one group is shown


def offered_roles() -> Choices:
    """The visible roles of the page's tenant, or the templates, by their keys."""
    if not current_session().can(Permission.ROLES_READ):
        return choices(*Role)
    tenant_id = (request.view_args or {}).get("tenant_id")
    return [(role["key"], role["name"]) for role in _roles(tenant_id)]


def _offered_permissions() -> Choices:
    return [(one["key"], one["key"]) for one in api.get(PERMISSIONS).data]


def _offered_keys() -> Choices:
    found = api.find("/v1/api-keys", **(request.view_args or {}), is_active=True, limit=100)
    return [(one["id"], one["name"]) for one in found.data] if found else ()


KEY = Field("key", "Key", help="Such as accountant. It cannot be changed.", is_required=True)
LOWEST = "Lowest role that may assign it"
FIELDS = (
    Field("name", "Name", is_required=True),
    Field("inherits", "Inherits", "select", choices=offered_roles, is_nullable=True),
    Field("assignable_by", LOWEST, "select", choices=choices(*Role), is_required=True),
    Field("permissions", "Permissions", "checks", choices=_offered_permissions),
)
REPLACE = Field("replace_with", "In its place", "select", choices=offered_roles, is_nullable=True)
ASSIGNMENT = (
    Field("role", "Role", "select", choices=offered_roles, is_required=True),
    MemberName("membership_id", "Member", help="Name, e-mail address or id.", of="user"),
    Field("api_key_id", "Or an API key", "select", choices=_offered_keys),
    Field("group_id", "Or a group of the directory", help="Its id."),
    Field("resource_type", "Type of the resource", help="Empty: the whole tenant."),
    Field("resource_id", "Id of the resource", help="It holds for everything below too."),
    moment_field("expires_at", "Ends at", "it does not end by itself"),
)

_form = partial(row_form, ROLES, name=itemgetter("name"))


@form_page("/roles", also_of_tenant=True)
def list_roles(tenant_id: UUID | None = None) -> Shown:
    """Show which role has which permission; a POST changes the roles whose boxes were changed."""
    if tenant_id is not None:
        api.get_tenant(tenant_id)  # the templates of a tenant that may not be read do not count
    roles = _roles(tenant_id)
    permissions = [{**one, "group": one["group"] or "other"} for one in api.get(PERMISSIONS).data]
    groups = sorted({one["group"] for one in permissions})
    is_large = len(roles) * len(permissions) > MOST
    group = request.args.get("group", groups[0] if is_large else "")
    editable = [role for role in roles if _may_edit(role, tenant_id)]
    answers = [(role["name"], _send_boxes(role)) for role in editable if request.method == "POST"]
    refused = [f"{name}: {one.refusal}" for name, one in answers if one and not one.is_ok]
    if request.method == "POST" and not refused:
        changed = ", ".join(name for name, one in answers if one)
        text = f"Changed: {changed or 'nothing'}."
        return set_notice(redirect(request.full_path.rstrip("?"), 303), text)
    values = {"roles": roles, "groups": groups, "group": group, "held": _held(roles, permissions)}
    values |= {"refused": refused, "typed": request.form if refused else None}
    values |= {"editable": [role["id"] for role in editable], "memberships": [*Role]}
    shown = [one for one in permissions if group in ("", one["group"])]
    return render("roles", "Roles", permissions=shown, **values), 422 if refused else 200


@form_page("/roles/new", also_of_tenant=True)
def create_role(tenant_id: UUID | None = None) -> Shown:
    form = Form("New role", (KEY, *FIELDS), values={"assignable_by": Role.ADMIN}, submit="Create")
    query, done = {"tenant_id": tenant_id}, "The role was created."
    return form.send("POST", ROLES, query=query, done=done, to=form.new_row)


@page(PLACE, also_of_tenant=True)
def show_role(role_id: UUID, tenant_id: UUID | None = None) -> Shown:
    """Show a role and its holders."""
    path = f"{ROLES}/{role_id}"
    role = api.get(path).data
    query = {"tenant_id": tenant_id, "role": role["key"], "include": "target_name"}
    listing, may_edit = list_rows(ASSIGNMENTS, **query), _may_edit(role, tenant_id)
    values = {"role": role, "may_edit": may_edit, "history": recent_history(path)}
    return show_list("role", role["name"], listing, COLUMNS, memberships=[*Role], **values)


@form_page(f"{PLACE}/edit", also_of_tenant=True)
def edit_role(role_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = _form(role_id, "Edit the role {}", fields=FIELDS)
    return form.send("PATCH", done="The role was changed.", changed_only=True)


@form_page(f"{PLACE}/delete", also_of_tenant=True)
def delete_role(role_id: UUID, tenant_id: UUID | None = None) -> Shown:
    intro = "Where somebody has it, or another role inherits it, a role has to take its place."
    form = _form(role_id, "Delete the role {}", intro, (REPLACE,), is_dangerous=True)
    form.submit = "Delete"
    done, to = "The role was deleted.", form.above
    return form.send("DELETE", in_query=True, done=done, to=to)


@form_page("/tenants/<uuid:tenant_id>/roles/assign")
def assign_role(tenant_id: UUID) -> Shown:
    """Assign a role; ``role`` and ``membership_id`` in the URL are values to begin with."""
    form = Form("Assign a role", ASSIGNMENT, values=request.args, submit="Assign")
    form.back = _back(tenant_id)

    def body(values: dict[str, Json]) -> Json:
        kind, name = values.pop("resource_type"), values.pop("resource_id")
        given = {key: value for key, value in values.items() if value}
        return {**given, "resource": {"type": kind, "id": name} if kind or name else None}

    query, done = {"tenant_id": tenant_id}, "The role is assigned."
    return form.send("POST", ASSIGNMENTS, query=query, body=body, done=done)


@form_page("/tenants/<uuid:tenant_id>/roles/assignments/<uuid:assignment_id>/remove")
def remove_assignment(tenant_id: UUID, assignment_id: UUID) -> Shown:
    intro = "The permissions that only this role gives end with the next request."
    form = row_form(ASSIGNMENTS, assignment_id, "Remove the role {}", intro, is_dangerous=True)
    form.name, form.submit = itemgetter("role"), "Remove the role"
    form.back = _back(tenant_id)
    return form.send("DELETE", done="The role was removed.")


def _back(tenant_id: UUID) -> str:
    """The page that led to a form, or the list."""
    return safe_target(
        request.args.get("next") or url_for("console.list_roles", tenant_id=tenant_id)
    )


def _roles(tenant_id: UUID | None) -> list[Json]:
    """The templates, those of memberships first, then the tenant's own roles by their names."""
    ranks = {role: -role.rank for role in Role}
    found = api.get_all(ROLES, tenant_id=tenant_id, is_template=None if tenant_id else True)
    return sorted(
        found, key=lambda one: (not one["is_template"], ranks.get(one["key"], 1), one["name"])
    )


def _may_edit(role: Json, tenant_id: UUID | None) -> bool:
    """Whether this page can change a role: it is the tenant's, or the platform's template."""
    is_own = role["tenant_id"] == (str(tenant_id) if tenant_id else None)
    return is_own and role["key"] != Role.OWNER and current_session().can(Permission.ROLES_WRITE)


def _held(roles: list[Json], permissions: list[Json]) -> dict[str, dict[str, str]]:
    """By a role's id, its permissions, each with the name of the role that has it itself."""
    by_key = {role["key"]: role for role in roles}
    product = [one["key"] for one in permissions if one["kind"] == "product"]

    def held(role: Json) -> dict[str, str]:
        inherited = by_key.get(role["inherits"])
        own = [*role["permissions"], *(product if role["key"] == Role.OWNER else ())]
        return (held(inherited) if inherited else {}) | dict.fromkeys(own, role["name"])

    return {role["id"]: held(role) for role in roles}


def _send_boxes(role: Json) -> api.Answer | None:
    """Send the changed boxes of a role; changes by others since the page was loaded stay."""
    shown = {*request.form.getlist(f"shown_{role['id']}")}
    typed = {*request.form.getlist(f"role_{role['id']}")}
    if shown == typed:
        return None
    path = f"{ROLES}/{role['id']}"
    found = api.get(path)
    kept = {one for one in found.data["permissions"] if one not in shown - typed}
    body = {"permissions": sorted(kept | (typed - shown))}
    return api.call("PATCH", path, body=body, if_match=found.etag)
