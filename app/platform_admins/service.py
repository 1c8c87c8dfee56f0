"""Platform superadmins: subjects of the identity provider who stand above every tenant."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.audit.service import add_event
from app.auth.models import PlatformAdmin
from app.core.actors import Actor
from app.core.db.models import Change
from app.core.errors import Invalid, NotFound, value_error
from app.extensions import db

MAX_SUBJECT = 255


def list_admins() -> Sequence[PlatformAdmin]:
    """All of them, by subject."""
    return db.session.execute(select(PlatformAdmin).order_by(PlatformAdmin.subject)).scalars().all()


def add(subject: str, *, actor: Actor) -> PlatformAdmin:
    """Make ``subject`` (1 to 255 printable characters) a superadmin; being one already is fine."""
    if not 1 <= len(subject) <= MAX_SUBJECT or not subject.isprintable():
        reason = f"a subject has 1 to {MAX_SUBJECT} printable characters"
        raise Invalid(value_error(["body", "subject"], reason, subject))
    found = db.session.get(PlatformAdmin, subject)
    if found is not None:
        return found
    admin = PlatformAdmin(subject=subject)
    db.session.add(admin)
    db.session.flush()
    _record("platform_admin.added", admin, Change({}, {"subject": subject}), actor)
    return admin


def remove(subject: str, *, actor: Actor) -> None:
    """End it, from the next request on; NotFound for who is none."""
    admin = db.session.get(PlatformAdmin, subject)
    if admin is None:
        raise NotFound
    db.session.delete(admin)
    _record("platform_admin.removed", admin, Change({"subject": subject}, {}), actor)


def _record(action: str, admin: PlatformAdmin, change: Change, actor: Actor) -> None:
    add_event(
        action,
        target_type="platform_admin",
        target_id=admin.subject,
        tenant_id=None,
        change=change,
        actor=actor,
    )
