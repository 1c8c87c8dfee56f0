"""Whom a token is to be issued for."""

from __future__ import annotations

from sqlalchemy import Text, cast, select

from app.auth.models import PlatformAdmin
from app.auth.tokens import Claims
from app.dev.faults import DevError
from app.extensions import db
from app.tenants.models import Tenant
from app.users.models import User


def superadmin_claims(slug: str | None) -> Claims:
    """A platform superadmin, the one longest here; their home is the tenant named, if one is.

    Raises :class:`DevError` where there is none.
    """
    subjects = select(PlatformAdmin.subject).order_by(PlatformAdmin.created_at)
    subject = db.session.execute(subjects).scalar()
    if subject is None:
        raise DevError("There is no platform superadmin: see flask platform-admins, or flask seed.")
    return Claims(subject, _tenant(slug).idp_org_id if slug else None)


def user_claims(user: str, slug: str | None) -> Claims:
    """The user with this id or e-mail address.

    Raises :class:`DevError` where there is none, or where several tenants have one.
    """
    rows = select(User).where((User.email == user) | (cast(User.id, Text) == user.lower()))
    if slug is not None:
        rows = rows.where(User.tenant_id == _tenant(slug).id)
    found = db.session.execute(rows.limit(2)).scalars().all()
    if not found:
        raise DevError(f"There is no user {user}" + (f" in {slug}." if slug else "."))
    if len(found) > 1:
        raise DevError(f"Several users are called {user}: name one by id, or add --tenant SLUG.")
    return Claims(found[0].idp_user_id, found[0].idp_org_id)


def _tenant(slug: str) -> Tenant:
    tenant = db.session.execute(select(Tenant).where(Tenant.slug == slug)).scalar()
    if tenant is None:
        raise DevError(f"There is no tenant {slug}.")
    return tenant
