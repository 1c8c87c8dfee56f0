"""The actor: who is recorded as having made a change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """``id`` is shown in rows and in the audit trail.

    It is a user's id, ``platform:<sub>``, ``key:<key id>`` or ``system:`` with ``idp``, ``email`` or
    ``cli``. ``role`` is the role of a tenant's credential (``admin`` for an API key). It is None for
    platform credentials and the system, to which the role hierarchy does not apply.
    """

    id: str
    role: str | None = None

    @property
    def is_platform(self) -> bool:
        """Whether the actor belongs to no tenant."""
        return self.role is None


SYSTEM_IDP = Actor("system:idp")
SYSTEM_EMAIL = Actor("system:email")
SYSTEM_CLI = Actor("system:cli")
