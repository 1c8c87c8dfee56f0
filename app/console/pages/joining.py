"""How people join a tenant: invitations, and requests of people who have its domain."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from uuid import UUID

from flask import redirect

from app.auth.permissions import Role
from app.config import current_config
from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page
from app.console.fields import Choices, Field, choices
from app.console.forms import Form, row_form
from app.console.lists import DATES, Filter, list_page
from app.console.next_page import Notice, set_notice
from app.console.pages.common import secret_page

INVITATIONS, REQUESTS = "/v1/invitations", "/v1/join-requests"
MEMBERS = "/tenants/<uuid:tenant_id>/members"
INVITED = Filter("state", "State", choices("pending", "accepted", "revoked", "expired"))
REQUESTED = Filter("state", "State", choices("pending", "accepted", "declined"))
HELP = "1 to 30. Until then the invitation takes a seat."
DAYS = Field("expires_in_days", "Days until it expires", "integer", help=HELP, is_required=True)


def offered_roles() -> Choices:
    """The roles that the person may give: none above their own."""
    principal = current_session().principal
    own = principal.actor.role if principal else None
    return choices(*(role for role in Role if own is None or role.rank <= Role(own).rank))


EMAIL = Field("email", "E-mail", "email", is_required=True)
ROLE = Field("role", "Role", "select", choices=offered_roles, is_required=True)

_form = partial(row_form, name=itemgetter("email"))

COLUMNS = "id email role state source expires_at accepted_at created_at"
INVITED_BY = (Filter("email", "E-mail"), INVITED, *DATES)
list_page(f"{MEMBERS}/invitations", "invitations", "Invitations", INVITATIONS, COLUMNS, INVITED_BY)


@form_page(f"{MEMBERS}/invitations/new")
def create_invitation(tenant_id: UUID) -> Shown:
    values = {"role": Role.MEMBER, "expires_in_days": 7}
    form = Form("Invite a person", (EMAIL, ROLE, DAYS), values=values, submit="Invite")
    body = {"tenant_id": str(tenant_id)}
    return form.send("POST", INVITATIONS, body=body.__or__, show=partial(_link, form.back))


@form_page(f"{MEMBERS}/invitations/<uuid:invitation_id>/resend")
def resend_invitation(tenant_id: UUID, invitation_id: UUID) -> Shown:
    intro = "The old link ends at once. The new one is valid for 7 days."
    form = _form(INVITATIONS, invitation_id, "Resend the invitation of {}", intro)
    return form.send("POST", "/resend", show=partial(_link, form.back))


@form_page(f"{MEMBERS}/invitations/<uuid:invitation_id>/revoke")
def revoke_invitation(tenant_id: UUID, invitation_id: UUID) -> Shown:
    intro = "Its link ends at once, and its seat is free."
    form = _form(INVITATIONS, invitation_id, "Revoke the invitation of {}", intro)
    return form.send("DELETE", done="The invitation was revoked.")


ASKED = "id tenant.name email first_name last_name domain state created_at"
LIST = ("join_requests", "Join requests", REQUESTS, ASKED, (REQUESTED, *DATES))
list_page("/members/join-requests", *LIST, also_of_tenant=True, include="tenant")


@form_page(f"{MEMBERS}/join-requests/<uuid:request_id>/accept")
def accept_join_request(tenant_id: UUID, request_id: UUID) -> Shown:
    intro = "The person becomes a member, with the role that the domain gives."
    form = _form(REQUESTS, request_id, "Accept {}", intro)
    return form.send("POST", "/accept", done="The person is a member.")


@form_page(f"{MEMBERS}/join-requests/<uuid:request_id>/decline")
def decline_join_request(tenant_id: UUID, request_id: UUID) -> Shown:
    intro = "The person does not become a member, and is not suggested again."
    form = _form(REQUESTS, request_id, "Decline {}", intro)
    return form.send("POST", "/decline", done="The request was declined.")


def _link(back: str, answer: api.Answer) -> Shown:
    """The link of an invitation, shown once; where the service mails it, nobody has to see it."""
    if current_config().smtp_url:
        text = f"The invitation is sent to {answer.data['email']}."
        return set_notice(redirect(back, 303), Notice(text))
    key, what = ("url", "link") if answer.data.get("url") else ("token", "token")
    return secret_page("The invitation", answer, name="email", key=key, back=back, what=what)
