"""Platform superadmins: subjects of the identity provider with all permissions in all tenants."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.audit.service import add_event
from app.auth.models import PlatformAdmin
from app.core.actors import Actor
from app.core.db.queries import Change, delete_where, find_row, get_where
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Invalid, NotFound, value_error

MAX_SUBJECT = 255  # characters

LIST = Statement("platform_admins.list", select(PlatformAdmin).order_by(PlatformAdmin.subject))


def list_admins() -> Sequence[PlatformAdmin]:
    return LIST.all()


def get_admin(subject: str) -> PlatformAdmin:
    return get_where(PlatformAdmin, subject=subject)


def add(subject: str, *, actor: Actor) -> PlatformAdmin:
    """Make ``subject`` a superadmin. An existing superadmin stays unchanged.

    Raises Invalid unless ``subject`` has 1 to 255 printable characters.
    """
    if not 1 <= len(subject) <= MAX_SUBJECT or not subject.isprintable():
        reason = f"a subject must have 1 to {MAX_SUBJECT} printable characters"
        raise Invalid(value_error(["body", "subject"], reason, subject))
    found = find_row(PlatformAdmin, subject=subject)
    if found is not None:
        return found
    admin = insert_row(PlatformAdmin, {"subject": subject})
    _record("platform_admin.added", subject, Change({}, {"subject": subject}), actor)
    return admin


def remove(subject: str, *, actor: Actor) -> None:
    """Remove a superadmin; it has effect on the next request. Raises NotFound."""
    if delete_where(PlatformAdmin, subject=subject) == 0:
        raise NotFound.of(PlatformAdmin)
    _record("platform_admin.removed", subject, Change({"subject": subject}, {}), actor)


def _record(action: str, subject: str, change: Change, actor: Actor) -> None:
    add_event(action, target_id=subject, tenant_id=None, change=change, actor=actor)
