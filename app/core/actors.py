"""Who is recorded as having done something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """``id`` is what the rows and the audit trail show.

    A user's id, ``platform:<sub>``, ``key:<key id>``, or ``system:`` with ``idp``, ``email``,
    ``job`` or ``cli``.
    """

    id: str

    def __str__(self) -> str:
        return self.id


SYSTEM_IDP = Actor("system:idp")
SYSTEM_EMAIL = Actor("system:email")
SYSTEM_JOB = Actor("system:job")
SYSTEM_CLI = Actor("system:cli")
