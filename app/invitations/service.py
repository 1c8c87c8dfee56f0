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

from sqlalchemy import ColumnElement, Text, bindparam, exists, select
from uuid_utils.compat import uuid7

from app.audit.service import add_event
from app.auth.keys import digest_of
from app.auth.permissions import Role
from app.config import current_config
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, visible_id
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import AppError, Conflict, NotFound
from app.core.jobs.queues import JOBS
from app.custom_fields import metadata
from app.custom_fields.entities import USER
from app.invitations.derived_tokens import new_token, url_of
from app.invitations.models import API, IS_PENDING, STATE, Invitation, InvitationState
from app.memberships import owners, seats
from app.memberships.models import Membership
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users.emails import email_key
from app.users.models import User

MAIL_JOB = "app.invitations.jobs.send_mail"
DAYS = 7  # until an invitation expires
HIDDEN = frozenset({"digest", "email_key", "mail_at", "mails"})
"""Columns that neither the audit trail nor events have."""

GET = Statement(
    "invitations.get",
    select(*Invitation.__table__.columns, STATE).where(Invitation.id == bindparam("id")),
)
LOCK_TENANT = Statement(
    "invitations.lock_tenant",
    select(Tenant).where(Tenant.id == bindparam("id")).with_for_update(key_share=True),
)
CHECK_ADDRESS: Statement[Any] = Statement(
    "invitations.check_address",
    select(
        seats.limit_of(bindparam("tenant_id")).label("limit"),
        exists()
        .where(
            Invitation.tenant_id == bindparam("tenant_id"),
            Invitation.email_key == bindparam("email_key"),
            IS_PENDING,
        )
        .label("is_invited"),
        exists()
        .where(
            User.tenant_id == bindparam("tenant_id"),
            User.email_key == bindparam("email_key"),
            User.is_active,
            Membership.tenant_id == User.tenant_id,
            Membership.user_id == User.id,
            Membership.is_active,
        )
        .label("is_member"),
    ),
)
DELETE_OLD = Statement(
    "invitations.delete_old",
    "DELETE FROM invitations WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM invitations"
    " WHERE expires_at < :before ORDER BY expires_at LIMIT :limit)",
    prepare=False,
)
HAS_STATE: ColumnElement[bool] = bindparam("state", type_=Text) == STATE


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
    found = GET.first(id=queries.parse_id(invitation_id, Invitation))
    if found is None:
        raise NotFound.of(Invitation)
    return found


def list_invitations(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    state: InvitationState | None = None,
    email: str | None = None,
) -> Page:
    """One page of a tenant's invitations (of all, for the platform); ``email`` in whatever case."""
    conditions = [] if state is None else [Condition(HAS_STATE, {"state": state.value})]
    equal = {} if email is None else {"email_key": email_key(email)}
    return paginate(
        Invitation, paging, *conditions, equal=equal, tenant_id=tenant_id, further=(STATE,)
    )


def create(
    tenant_id: UUID,
    *,
    email: str,
    role: Role,
    expires_in_days: int = DAYS,
    meta_data: Mapping[str, Any] | None = None,
    actor: Actor,
) -> SimpleNamespace:
    """Invite an address, which takes a seat; returned with the ``token``, which is not stored.

    Raises NotFound for an unknown tenant, TenantDeleting, RoleAboveOwn, AlreadyMember,
    InvitationExists, SeatLimit, SecretsKeyMissing, and Invalid for ``meta_data`` that a new user
    of the tenant could not have.
    """
    owners.check_may_grant(role, actor=actor)
    invitation_id = uuid7()
    token = new_token(invitation_id, 1)
    tenant = lock_tenant(visible_id(tenant_id))
    tenants.check_accepts_people(tenant)
    metadata.check_all(USER, tenant.id, {}, meta_data or {})
    _take_seat(tenant.id, email_key(email), actor)
    values = {
        "id": invitation_id,
        "email": email,
        "role": role.value,
        "acts_as": str(actor.role or Role.OWNER),
        "meta_data": dict(meta_data or {}),
        "digest": digest_of(token),
        "expires_at": utcnow() + timedelta(days=expires_in_days),
        **_mail_now(invitation_id),
    }
    return _with_token(_insert(tenant.id, values, InvitationState.PENDING, actor), token)


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
    rotation = invitation.rotation + 1
    token = new_token(invitation.id, rotation)
    values = {
        "digest": digest_of(token),
        "rotation": rotation,
        "expires_at": utcnow() + timedelta(days=expires_in_days),
        **_mail_now(invitation.id),
    }
    invitation = change(
        invitation, values, "invitation.resent", InvitationState.PENDING, actor=actor
    )
    return _with_token(invitation, token)


def revoke(invitation_id: UUID | str, *, actor: Actor) -> None:
    """End an invitation that nobody has accepted; a second revocation changes nothing.

    Raises NotFound, ManagedByProvider and InvitationEnded.
    """
    invitation, state = _lock(invitation_id)
    if state == InvitationState.ACCEPTED:
        raise InvitationEnded(f"This invitation is {state}.")
    if state != InvitationState.REVOKED:
        ended = {"revoked_at": utcnow()}
        change(invitation, ended, "invitation.revoked", InvitationState.REVOKED, actor=actor)


def apply_from_provider(
    tenant_id: UUID,
    source: str,
    idp_invitation_id: str,
    values: Mapping[str, Any],
    *,
    actor: Actor,
) -> Invitation:
    """Store what the identity provider says of its invitation; it has no token here.

    ``values`` are columns: ``email``, ``role``, ``expires_at``, ``accepted_at``, ``revoked_at``; a
    new one needs the first three. It takes a seat while it is pending, also beyond the limit: the
    provider is the authority.
    """
    lock_tenant(tenant_id)
    key = {"tenant_id": tenant_id, "source": source, "idp_invitation_id": idp_invitation_id}
    found = queries.find_locked(Invitation, **key)
    if "email" in values:
        values = {**values, "email_key": email_key(values["email"])}
    after = values if found is None else {**found._asdict(), **values}
    action, state = "invitation.resent", InvitationState.PENDING
    if after.get("accepted_at"):
        action, state = "invitation.accepted", InvitationState.ACCEPTED
    elif after.get("revoked_at"):
        action, state = "invitation.revoked", InvitationState.REVOKED
    if found is not None:
        return change(found, values, action, state, actor=actor)
    own = {"acts_as": Role.OWNER.value, "source": source, "idp_invitation_id": idp_invitation_id}
    return _insert(tenant_id, {**own, **values}, state, actor)


def delete_old(limit: int) -> int:
    """Delete invitations whose end is more than ``INVITATION_DAYS`` ago; returns their number."""
    before = utcnow() - timedelta(days=current_config().invitation_days)
    return DELETE_OLD.execute(before=before, limit=limit)


def lock_tenant(tenant_id: UUID) -> Tenant:
    """Lock the tenant's row, as changes of seats do; raises NotFound."""
    tenant: Tenant | None = LOCK_TENANT.first(id=tenant_id)
    if tenant is None:
        raise NotFound.of(Tenant)
    return tenant


def change(
    invitation: Invitation,
    values: Mapping[str, Any],
    action: str,
    state: InvitationState,
    *,
    actor: Actor,
) -> Invitation:
    """Set columns of a locked invitation, and record ``action`` with the new state."""
    invitation, changed = queries.update_row(Invitation, invitation, values, actor_id=actor.id)
    if changed is not None:
        shown = changed.part(name for name in changed.after if name not in HIDDEN)
        _record(action, invitation, shown, state, actor)
    return invitation


def _insert(
    tenant_id: UUID, values: Mapping[str, Any], state: InvitationState, actor: Actor
) -> Invitation:
    own = {
        "tenant_id": tenant_id,
        "email_key": email_key(values["email"]),
        "created_by_user_id": actor.id,
        "updated_by_user_id": actor.id,
    }
    invitation = insert_row(Invitation, {**own, **values})
    _record("invitation.created", invitation, None, state, actor)
    return invitation


def _record(
    action: str,
    invitation: Invitation,
    changed: Change | None,
    state: InvitationState,
    actor: Actor,
) -> None:
    columns = {**invitation._asdict(), "state": state.value}
    shown = {name: value for name, value in columns.items() if name not in HIDDEN}
    add_event(
        action,
        target_id=str(invitation.id),
        tenant_id=invitation.tenant_id,
        change=changed or Change({}, shown),
        actor=actor,
        data=shown if changed else None,
    )


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
    lock_tenant(get_invitation(invitation_id).tenant_id)
    invitation, (state,) = queries.lock_with(Invitation, invitation_id, STATE)
    queries.check_precondition(invitation)
    if invitation.source != API:
        raise ManagedByProvider
    return invitation, state


def _mail_now(invitation_id: UUID) -> dict[str, Any]:
    """The columns of an invitation that the service mails; none without ``SMTP_URL``."""
    if not current_config().smtp_url:
        return {}
    JOBS[MAIL_JOB].push(str(invitation_id))
    return {"mail_at": utcnow(), "mails": 0}


def _with_token(invitation: Invitation, token: str) -> SimpleNamespace:
    state = InvitationState.PENDING.value
    return SimpleNamespace(**invitation._asdict(), state=state, token=token, url=url_of(token))
