"""Invitations: create, find, resend, revoke; those that the identity provider reports.

Each change first locks the tenant's row, as changes of seats do. So an address has one pending
invitation, and what is accepted, revoked or sent again at the same moment runs one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, and_, bindparam, exists, select
from uuid_utils.compat import uuid7

from app.audit.service import record, record_creation
from app.auth.keys import digest_of
from app.auth.permissions import Role
from app.config import current_config
from app.core.actors import SYSTEM_IDP, Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import AppError, Conflict
from app.core.jobs.queues import JOBS
from app.custom_fields import metadata
from app.custom_fields.entities import USER
from app.invitations.derived_tokens import new_token, url_of
from app.invitations.models import API, IN_STATE, IS_PENDING, STATE, Invitation, InvitationState
from app.memberships import owners, seats
from app.memberships.models import Membership
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users.emails import email_key
from app.users.models import User

MAIL_JOB = "app.invitations.jobs.send_mails"
DAYS = 7  # until an invitation expires
HIDDEN = frozenset({"digest", "email_key", "mail_at", "mails"})
"""Columns that neither the audit trail nor events have."""

GET = Statement(
    "invitations.get",
    select(*Invitation.__table__.columns, STATE).where(Invitation.id == bindparam("id")),
)
_tenant_id, _key = bindparam("tenant_id", type_=Uuid), bindparam("email_key", type_=Text)
_is_invited = exists().where(
    Invitation.tenant_id == _tenant_id, Invitation.email_key == _key, IS_PENDING
)
_is_member = exists().where(
    and_(User.tenant_id == _tenant_id, User.email_key == _key, User.is_active),
    and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id),
    Membership.is_active,
)
CHECK_ADDRESS: Statement[Any] = Statement(
    "invitations.check_address",
    select(
        seats.limit_of(_tenant_id).label("limit"),
        _is_invited.label("is_invited"),
        _is_member.label("is_member"),
    ),
)


class InvitationExists(Conflict):
    code = "invitation_exists"
    detail = "This address has a pending invitation; resend or revoke that one."


class AlreadyMember(Conflict):
    code = "already_member"
    detail = "An active member has this address."


class ManagedByProvider(Conflict):
    code = "managed_by_provider"
    detail = "The identity provider manages this invitation; change it there."


class InvitationEnded(AppError):
    """410: the invitation is not pending any more; the text names its last state."""

    status = 410
    code = "invitation_ended"
    detail = "This invitation is expired."


def get_invitation(invitation_id: UUID | str) -> Any:
    """The invitation with its ``state``; raises NotFound."""
    return GET.get(Invitation, id=queries.parse_id(invitation_id, Invitation))


def list_invitations(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    state: InvitationState | None = None,
    email: str | None = None,
) -> Page:
    """One page of a tenant's invitations (of all, for the platform); ``email`` in whatever case."""
    conditions = [] if state is None else [Condition(IN_STATE[state], {})]
    equal = {} if email is None else {"email_key": email_key(email)}
    return paginate(
        Invitation, paging, *conditions, equal=equal, tenant_id=tenant_id, further=(STATE,)
    )


def create(tenant_id: UUID, values: Mapping[str, Any], *, actor: Actor) -> SimpleNamespace:
    """Invite an address, which takes a seat; returned with the ``token``, which is not stored.

    ``values`` are ``email``, ``role``, ``meta_data`` and ``expires_in_days``. Raises NotFound for an
    unknown tenant, TenantDeleting, RoleAboveOwn, AlreadyMember, InvitationExists, SeatLimit,
    SecretsKeyMissing, and Invalid for ``meta_data``.
    """
    owners.check_may_grant(values["role"], actor=actor)
    invitation_id, key = uuid7(), email_key(values["email"])
    token, of_token = _new_token(invitation_id, 1, values["expires_in_days"])
    tenant, _ = queries.lock_with(Tenant, visible_id(tenant_id))
    tenants.check_accepts_people(tenant)
    metadata.check_all(USER, tenant.id, {}, values["meta_data"])
    _take_seat(tenant.id, key, actor)
    own = {
        "id": invitation_id,
        "tenant_id": tenant.id,
        "email": values["email"],
        "email_key": key,
        "role": str(values["role"]),
        "acts_as": str(actor.role or Role.OWNER),
        "meta_data": values["meta_data"],
    }
    return _with_token(_insert(own | of_token, actor), token)


def resend(
    invitation_id: UUID | str, *, expires_in_days: int = DAYS, actor: Actor
) -> SimpleNamespace:
    """Give a pending or expired invitation a new ``token`` and a new end; the old token is invalid.

    An expired one takes a seat again. Raises NotFound, RoleAboveOwn, ManagedByProvider,
    InvitationEnded, AlreadyMember, InvitationExists, SeatLimit and SecretsKeyMissing.
    """
    invitation, state = _lock(invitation_id)
    owners.check_may_grant(invitation.role, actor=actor)
    if state not in (InvitationState.PENDING, InvitationState.EXPIRED):
        raise InvitationEnded(f"This invitation is {state}.")
    if state == InvitationState.EXPIRED:
        _take_seat(invitation.tenant_id, invitation.email_key, actor)
    token, values = _new_token(invitation.id, invitation.rotation + 1, expires_in_days)
    return _with_token(change(invitation, values, "invitation.resent", actor=actor), token)


def revoke(invitation_id: UUID | str, *, actor: Actor) -> None:
    """End an invitation that nobody has accepted; a second revocation changes nothing.

    Raises NotFound, ManagedByProvider and InvitationEnded.
    """
    invitation, state = _lock(invitation_id)
    if state == InvitationState.ACCEPTED:
        raise InvitationEnded(f"This invitation is {state}.")
    if state != InvitationState.REVOKED:
        change(invitation, {"revoked_at": utcnow()}, "invitation.revoked", actor=actor)


def apply_from_provider(
    tenant_id: UUID, source: str, idp_invitation_id: str, values: Mapping[str, Any]
) -> Any:
    """Store what the identity provider says of its invitation; it has no token here.

    ``values`` are columns: ``email``, ``role``, ``expires_at``, ``accepted_at``, ``revoked_at``. It
    takes a seat while it is pending, also beyond the limit: the provider is the authority.
    """
    queries.lock_with(Tenant, tenant_id)
    key = {"tenant_id": tenant_id, "source": source, "idp_invitation_id": idp_invitation_id}
    values = {**values, "email_key": email_key(values["email"])}
    found = queries.find_locked(Invitation, **key)
    if found is None:
        return _insert({"acts_as": Role.OWNER.value, **key, **values}, SYSTEM_IDP)
    action = "invitation.resent"
    if values.get("accepted_at"):
        action = "invitation.accepted"
    elif values.get("revoked_at"):
        action = "invitation.revoked"
    return change(found, values, action, actor=SYSTEM_IDP)


def change(invitation: Invitation, values: Mapping[str, Any], action: str, *, actor: Actor) -> Any:
    """Set columns of a locked invitation, record ``action``, and return it with its ``state``."""
    _, changed = queries.update_row(Invitation, invitation, values, actor_id=actor.id)
    row = get_invitation(invitation.id)
    if changed is not None:
        shown = changed.part(name for name in changed.after if name not in HIDDEN)
        record(action, row, shown, actor=actor, hidden=HIDDEN)
    return row


def _insert(values: Mapping[str, Any], actor: Actor) -> Any:
    row = get_invitation(insert_row(Invitation, {**values, **actor.authorship}).id)
    record_creation("invitation.created", row, actor=actor, hidden=HIDDEN)
    return row


def _take_seat(tenant_id: UUID, key: str, actor: Actor) -> None:
    """Take a seat for an address that has neither a pending invitation nor a membership."""
    found = CHECK_ADDRESS.one(tenant_id=tenant_id, email_key=key)
    if found.is_member:
        raise AlreadyMember
    if found.is_invited:
        raise InvitationExists
    seats.take(found.limit, tenant_id, actor=actor)


def _lock(invitation_id: UUID | str) -> tuple[Invitation, str]:
    """The locked invitation of this service, and its state; raises NotFound, ManagedByProvider."""
    queries.lock_with(Tenant, get_invitation(invitation_id).tenant_id)
    invitation, (state,) = queries.lock_with(Invitation, invitation_id, STATE)
    queries.check_precondition(invitation)
    if invitation.source != API:
        raise ManagedByProvider
    return invitation, state


def _new_token(invitation_id: UUID, rotation: int, days: int) -> tuple[str, dict[str, Any]]:
    """The token with this number, and the columns of an invitation that has it.

    With ``SMTP_URL`` a job mails it; raises SecretsKeyMissing.
    """
    token, now = new_token(invitation_id, rotation), utcnow()
    values: dict[str, Any] = {
        "digest": digest_of(token),
        "rotation": rotation,
        "expires_at": now + timedelta(days=days),
    }
    if current_config().smtp_url:
        values |= {"mail_at": now, "mails": 0}
        JOBS[MAIL_JOB].push()
    return token, values


def _with_token(row: Any, token: str) -> SimpleNamespace:
    return SimpleNamespace(**row._asdict(), token=token, url=url_of(token))
