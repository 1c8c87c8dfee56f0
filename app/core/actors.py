"""The actor: who is recorded as having made a change."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass

LONGEST_NAME = 64  # characters


@dataclass(frozen=True)
class Actor:
    """``id`` is shown in rows and in the audit trail.

    The id is one of: a user's id, ``platform:<sub>``, ``key:<key id>``, ``scim:<connection id>``,
    ``invitation:<invitation id>``, ``setup_link:<link id>``, ``system:idp``, ``system:email``,
    ``system:billing``, ``system:job``, ``system:webhooks``, or ``cli:<name of the operating
    system's user>``. ``role`` is the role of a tenant's credential, SCIM connection, invitation or
    setup link; an API key without ``platform:superadmin`` has ``admin``. Superadmins, the system and
    commands have the role None: the role hierarchy does not apply to them.
    """

    id: str
    role: str | None = None
    has_platform_key: bool = False

    @property
    def authorship(self) -> dict[str, str]:
        """The columns of a new row that say who created it, see :class:`app.core.db.models.Attributed`."""
        return {"created_by_user_id": self.id, "updated_by_user_id": self.id}

    @property
    def is_platform(self) -> bool:
        return self.role is None or self.has_platform_key

    @property
    def is_operator(self) -> bool:
        """Whether this is a superadmin, a platform key or a command. Tenants never see its id."""
        return self.is_platform and not self.id.startswith(("system:", "scim:"))


def system_user() -> str:
    """The name of the operating system's user, or the numeric user id if there is no name.

    A longer name is cut to :data:`LONGEST_NAME` characters. Unprintable characters become ``?``.
    """
    try:
        name = getpass.getuser()
    except (KeyError, ImportError, OSError):  # Python before 3.13 raises KeyError or ImportError
        name = str(os.getuid())
    return "".join(one if one.isprintable() else "?" for one in name[:LONGEST_NAME])


SYSTEM_IDP = Actor("system:idp")
SYSTEM_EMAIL = Actor("system:email")
SYSTEM_BILLING = Actor("system:billing")
SYSTEM_JOB = Actor("system:job")
SYSTEM_WEBHOOKS = Actor("system:webhooks")
SYSTEM_CLI = Actor(f"cli:{system_user()}")
