"""The actor: who is recorded as having made a change."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass

LONGEST_NAME = 64  # characters


@dataclass(frozen=True)
class Actor:
    """``id`` is shown in rows and in the audit trail.

    It is a user's id, ``platform:<sub>``, ``key:<key id>``, ``system:`` with ``idp``, ``email``,
    ``job`` or ``webhooks``, ``scim:<connection id>``, or ``cli:`` with the name of the operating
    system's user. ``role`` is the role of a tenant's credential (``admin`` for an API key). It is
    None for platform credentials, the system and commands, to which the role hierarchy does not
    apply.
    """

    id: str
    role: str | None = None

    @property
    def is_platform(self) -> bool:
        return self.role is None

    @property
    def is_operator(self) -> bool:
        """Whether this is a superadmin or a platform key. Tenants must not see its id."""
        return self.is_platform and not self.id.startswith(("system:", "scim:"))


def system_user() -> str:
    """The name of the operating system's user, or the user id if it has no name.

    It has at most :data:`LONGEST_NAME` characters. Those that cannot be printed become ``?``.
    """
    try:
        name = getpass.getuser()
    except (KeyError, ImportError, OSError):  # before Python 3.13 KeyError or ImportError
        name = str(os.getuid())
    return "".join(one if one.isprintable() else "?" for one in name[:LONGEST_NAME])


SYSTEM_IDP = Actor("system:idp")
SYSTEM_EMAIL = Actor("system:email")
SYSTEM_JOB = Actor("system:job")
SYSTEM_WEBHOOKS = Actor("system:webhooks")
SYSTEM_CLI = Actor(f"cli:{system_user()}")
