"""Why a credential may do something, or may not.

The decision is made as for requests: what the statements here find is judged by
:func:`principal_of_user` or :func:`principal_of_key`, then by :meth:`Requires.check`. The
statements find the rows that the database functions ``authenticate_user`` and ``authenticate_key``
find, and those that are not active too. They do not set the tenant scope or record a key's use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ColumnExpressionArgument,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    exists,
    func,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import aliased

from app.access.credentials import Key, Member
from app.access.facts import find_facts
from app.access.judging import decide
from app.access.questions import Question, Thing
from app.access.steps import Assigned, Outcome, Step, StepName
from app.auth.guard import Requires
from app.auth.models import ApiKey, PlatformAdmin
from app.auth.permissions import ALL, Permission
from app.auth.tokens import Claims
from app.core.db.models import Row
from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.errors import Forbidden, NotFound, Unauthenticated
from app.domains.joining import match
from app.domains.models import JoinRequest, JoinRequestState
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User

_org_id = cast(bindparam("org_id"), Text)
_tenant_id = cast(bindparam("tenant_id"), Uuid)
R = TypeVar("R", bound=Row)
Named = aliased(Tenant)  # by the request; a platform key is of no tenant
DECIDING = (
    StepName.CREDENTIAL, StepName.USER, StepName.MEMBERSHIP, StepName.TENANT, StepName.PLATFORM,
)  # fmt: skip
"""The steps by which a request is refused, in this order; else it is refused by the permission."""

_subject = cast(bindparam("subject"), Text)
_person = union_all(  # one of the two is empty
    select(_subject.label("subject"), cast(null(), Uuid).label("home")).where(
        _subject.is_not(None)
    ),
    select(User.idp_user_id, User.tenant_id).where(User.id == bindparam("user_id", type_=Uuid)),
).subquery("person")
_home = case((_org_id.is_(None), _person.c.home))


def _assigned(
    *ids: ColumnExpressionArgument[UUID] | ColumnExpressionArgument[UUID | None],
) -> ColumnElement[Any]:
    """A column: the assigned roles of a membership's user or of an API key; None without roles."""
    roles = func.assigned_roles(*ids).table_valued("assignment_id", "role", "permissions")
    row = func.json_build_array(*roles.c)
    return select(func.json_agg(row)).select_from(roles).scalar_subquery().label("assigned")


FIND_PERSON = Statement(
    "access.find_person",
    select(
        _person.c.subject,
        exists().where(PlatformAdmin.subject == _person.c.subject).label("is_superadmin"),
        Tenant,
        User,
        Membership,
        JoinRequest,
        Invitation,
        _assigned(Membership.tenant_id, Membership.id, Membership.user_id, null()),
    )
    .select_from(_person)
    .outerjoin(
        Tenant, or_(Tenant.idp_org_id == _org_id, Tenant.id == func.coalesce(_tenant_id, _home))
    )
    .outerjoin(User, (User.tenant_id == Tenant.id) & (User.idp_user_id == _person.c.subject))
    .outerjoin(
        Membership, (Membership.tenant_id == User.tenant_id) & (Membership.user_id == User.id)
    )
    .outerjoin(
        JoinRequest,
        (JoinRequest.tenant_id == User.tenant_id)
        & (JoinRequest.user_id == User.id)
        & (JoinRequest.state == JoinRequestState.ACCEPTED.value),
    )
    .outerjoin(
        Invitation,
        (Invitation.tenant_id == User.tenant_id)
        & (Invitation.user_id == User.id)
        & Invitation.accepted_at.is_not(None),
    )
    .order_by(Invitation.accepted_at.desc())
    .limit(1),
)
FIND_KEY = Statement(
    "access.find_key",
    select(
        ApiKey,
        Tenant,
        (ApiKey.expires_at <= func.now()).label("is_expired"),
        Named.id.label("named"),
        _assigned(ApiKey.tenant_id, null(), null(), ApiKey.id),
    )
    .outerjoin(Tenant, Tenant.id == ApiKey.tenant_id)
    .outerjoin(Named, or_(Named.idp_org_id == _org_id, Named.id == _tenant_id))
    .where(ApiKey.id == bindparam("key_id", type_=Uuid)),
)


@dataclass(frozen=True)
class Explanation:
    """The answer to a request that needs ``permission``, and the steps to it.

    ``status`` is 200 or that of the refusal. ``reason`` is the refusal's code, as the log names it.
    """

    permission: str
    status: int
    reason: str
    decided_by: StepName
    tenant_id: UUID | None
    steps: list[Step]

    @property
    def allowed(self) -> bool:
        return self.status == 200


def explain(
    permission: str,
    *,
    resource_type: str | None = None,
    resource_id: str | None = None,
    subject: str | None = None,
    user_id: UUID | None = None,
    key_id: UUID | None = None,
    org_id: str | None = None,
    tenant_id: UUID | None = None,
) -> Explanation:
    """The answer to a request with the API key ``key_id``, or with a token of a person.

    A permission of the product, or one on a resource, is decided as AuthZEN's endpoints decide it.

    The person is the ``subject``, or the person of the user ``user_id``. The token's organization
    is ``org_id``, or that of ``tenant_id``, else that of the user. Raises NotFound for an unknown
    user, key or tenant, and for a key of another tenant than the given one. A platform key is used
    in the given tenant; its organization must exist too.

    In a tenant's scope, what is of another tenant is unknown too, and so is every organization but
    the tenant's own. Nothing says there whether the person is a platform superadmin.
    """
    if tenant_id is not None:
        visible_id(tenant_id)
    if permission not in ALL or resource_type is not None:
        subject_id, type_ = (subject, "identity") if subject else (user_id or key_id, "user")
        who = Thing(str(subject_id), "api_key" if key_id else type_)
        place = {"tenant_id": str(tenant_id)} if tenant_id else {"tenant_id": org_id}
        what = Thing(resource_id or "", resource_type or "")
        return _explain_decision(Question(who, Thing(permission), what, place))
    permission = Permission(permission)
    credential: Key | Member
    if key_id is not None:
        credential = _find_key(key_id, org_id, tenant_id)
    else:
        credential = _find_person(subject, user_id, org_id, tenant_id)
    status, reason, steps = 200, "", credential.steps(permission)
    by_superadmin = isinstance(credential, Member) and credential.is_platform
    decided_by = StepName.PLATFORM if by_superadmin else StepName.PERMISSION
    try:
        Requires(permission).check(credential.principal())
    except (Unauthenticated, Forbidden) as refusal:
        status = refusal.status
        reason = refusal.reason if isinstance(refusal, Unauthenticated) else refusal.code or ""
        failed = {step.step for step in steps if step.outcome is Outcome.FAILED}
        decided_by = next((one for one in DECIDING if one in failed), StepName.PERMISSION)
    tenant_id = credential.tenant.id if credential.tenant else None
    return Explanation(permission, status, reason, decided_by, tenant_id, steps)


def _explain_decision(question: Question) -> Explanation:
    (facts,) = find_facts([question], None)
    steps = list(decide(facts, question))
    refused = next((step for step in steps if step.outcome is Outcome.FAILED), None)
    told = (403, refused.code, refused.step) if refused else (200, "", StepName.PERMISSION)
    return Explanation(question.action.id, *told, facts.tenant_id if facts else None, steps)


def _find_person(
    subject: str | None, user_id: UUID | None, org_id: str | None, tenant_id: UUID | None
) -> Member:
    own = current_scope().tenant_id
    place = {"org_id": org_id if own is None else None, "tenant_id": own or tenant_id}
    found = FIND_PERSON.first(subject=subject, user_id=user_id, **place)
    if found is None:
        raise NotFound.of("user")
    tenant = _existing(found.Tenant)
    if not _is_named(tenant, org_id if own else None, tenant_id):
        raise NotFound.of("tenant")
    user = _existing(found.User)
    return Member(
        Claims(found.subject, tenant.idp_org_id if tenant else org_id),
        tenant,
        user,
        _existing(found.Membership),
        _existing(found.JoinRequest),
        _existing(found.Invitation),
        None if user is None else _sso_domain(user),
        is_superadmin=found.is_superadmin if own is None else None,
        assigned=[Assigned(*one) for one in found.assigned or ()],
    )


def _sso_domain(user: User) -> str | None:
    """The tenant's verified domain of the user's address, if its people must use single sign-on."""
    own = (domain for _, domain in match([user]) if domain.tenant_id == user.tenant_id)
    return next((domain.name for domain in own if domain.enforce_sso), None)


def _find_key(key_id: UUID, org_id: str | None, tenant_id: UUID | None) -> Key:
    own = current_scope().tenant_id
    found = FIND_KEY.first(key_id=key_id, org_id=org_id, tenant_id=tenant_id)
    if found is None or own not in (None, found.ApiKey.tenant_id):
        raise NotFound.of(ApiKey)
    is_named = org_id is not None or tenant_id is not None
    if is_named and (found.named is None or found.ApiKey.tenant_id not in (None, found.named)):
        raise NotFound.of(ApiKey)
    return Key(
        found.ApiKey,
        _existing(found.Tenant),
        is_expired=bool(found.is_expired),
        assigned=[Assigned(*one) for one in found.assigned or ()],
    )


def _existing(row: R) -> R | None:
    """The row; None where the outer join found none."""
    return None if row.id is None else row


def _is_named(tenant: Tenant | None, org_id: str | None, tenant_id: UUID | None) -> bool:
    """Whether the tenant exists and has these ids; None stands for any id."""
    if tenant is None:
        return org_id is None and tenant_id is None
    return org_id in (None, tenant.idp_org_id) and tenant_id in (None, tenant.id)
