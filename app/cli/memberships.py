"""``flask memberships``."""

from __future__ import annotations

from typing import Any

import click

from app.auth.permissions import Role
from app.cli.base import AppGroup, json_option, operator, print_json, print_rows
from app.cli.lookup import find_membership, find_tenant, find_user
from app.cli.records import load, paging_options, print_one, print_page, tell_of_more
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.identity_sync import waiting
from app.identity_sync.schemas import WaitingSchema
from app.memberships import service
from app.memberships.schemas import USER, MembershipCreateSchema, TenantMembershipSchema

COLUMNS = ("id", "idp_org_id", "user_id", "email", "role", "is_active", "created_at")
WAITING_COLUMNS = (
    "kind", "source", "object_id", "organization_id", "user_id", "since", "missing",
)  # fmt: skip
ROLES = click.Choice([role.value for role in Role])

memberships = AppGroup("memberships", help="List, create and end memberships; change roles.")
SHAPE = TenantMembershipSchema()
membership_argument = click.argument("membership_id", metavar="MEMBERSHIP")
tenant_option = click.option("--tenant", help="Only in this tenant (slug or id).")


@memberships.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--user", help="Only of this user (id or e-mail address).")
@click.option("--role", type=ROLES, help="Only with this role.")
@click.option("--active/--inactive", "is_active", default=None, help="Only these.")
@paging_options()
@json_option
@operator
def list_memberships(
    tenant: str | None, user: str | None, paging: Paging, as_json: bool, **equal: Any
) -> None:
    """List memberships, with the members' e-mail addresses."""
    filters = {"user_id": find_user(user, tenant).id if user else None, **equal}
    page = service.list_memberships(
        paging,
        tenant_id=find_tenant(tenant).id if tenant else None,
        filters={name: value for name, value in filters.items() if value is not None},
    )
    shown = [
        {**SHAPE.dump(row), "email": member.email}
        for row, member in zip(page.items, USER.read(page.items), strict=True)
    ]
    if as_json:
        print_json(shown)
    else:
        print_rows(shown, COLUMNS, as_json=False)
    tell_of_more(page)


@memberships.command("show")
@membership_argument
@tenant_option
@json_option
@operator
def show(membership_id: str, tenant: str | None, as_json: bool) -> None:
    """Show a membership.

    It is named by id or by the member's e-mail address.
    """
    print_one(find_membership(membership_id, tenant), SHAPE, as_json=as_json)


@memberships.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@click.option("--user", required=True, help="The user (id or e-mail address).")
@click.option("--role", required=True, type=ROLES, help="What the member may do.")
@click.option("--idp-membership-id", help="The membership's id at the identity provider.")
@json_option
@operator
def create(tenant: str, user: str, role: str, idp_membership_id: str | None, as_json: bool) -> None:
    """Make a user a member of the tenant."""
    member = find_user(user, tenant)
    given = {"user_id": str(member.id), "role": role, "idp_membership_id": idp_membership_id}
    values = load(MembershipCreateSchema, given)
    row = service.create(member.tenant_id, values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@memberships.command("waiting")
@paging_options()
@json_option
@operator
def list_waiting(paging: Paging, as_json: bool) -> None:
    """List what the identity provider sent without its counterpart.

    These are memberships without their organization or user, and people without a membership.
    """
    page = waiting.list_waiting(paging)
    print_page(page, WaitingSchema(), WAITING_COLUMNS, as_json=as_json)


@memberships.command("set-role")
@membership_argument
@click.argument("role", type=ROLES)
@tenant_option
@json_option
@operator
def set_role(membership_id: str, role: str, tenant: str | None, as_json: bool) -> None:
    """Give a member another role. A tenant's last active owner cannot lose the role.

    The membership is named by id or by the member's e-mail address.
    """
    found = find_membership(membership_id, tenant)
    row = service.set_role(found.id, Role(role), actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@memberships.command("deactivate")
@membership_argument
@tenant_option
@json_option
@operator
def deactivate(membership_id: str, tenant: str | None, as_json: bool) -> None:
    """End a membership; the row stays.

    It is named by id or by the member's e-mail address.
    """
    found = find_membership(membership_id, tenant)
    row = service.set_active(found.id, False, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@memberships.command("activate")
@membership_argument
@tenant_option
@json_option
@operator
def activate(membership_id: str, tenant: str | None, as_json: bool) -> None:
    """Activate a membership again.

    It is named by id or by the member's e-mail address.
    """
    found = find_membership(membership_id, tenant)
    row = service.set_active(found.id, True, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)
