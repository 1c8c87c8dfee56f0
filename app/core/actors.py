"""Who is recorded as having done something, and how far they may reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """``id`` is what the rows and the audit trail show.

    A user's id, ``platform:<sub>``, ``key:<key id>``, or ``system:`` with ``idp``, ``email``,
    ``job`` or ``cli``. ``role`` is the role that a tenant's credential acts with (a tenant's API
    key counts as ``admin``); None for platform credentials and the system, whom the rules of
    the role hierarchy do not bind (``is_platform``).
    """

    id: str
    role: str | None = None

    @property
    def is_platform(self) -> bool:
        """Whether the actor stands outside any tenant."""
        return self.role is None


SYSTEM_IDP = Actor("system:idp")
SYSTEM_EMAIL = Actor("system:email")
SYSTEM_JOB = Actor("system:job")
SYSTEM_CLI = Actor("system:cli")
