"""``flask console``: links that sign a person in to the console once."""

from __future__ import annotations

from typing import Any

from app.audit.service import add_event
from app.auth import sessions
from app.cli.base import Group, json_option, local_address
from app.cli.tokens import chosen_subject, subject_options
from app.config import current_config
from app.console.sign_in import LINK, link_url
from app.core.actors import SYSTEM_CLI
from app.core.db.queries import Change, find_row
from app.core.db.tenancy import platform_transaction
from app.surfaces.commands.text import print_text
from app.tenants.models import Tenant

console = Group("console", help="Sign in to the console in the browser.")


@console.command("link")
@subject_options
@json_option
def link(as_json: bool, **chosen: Any) -> None:
    """Print a link that is valid once, for ten minutes. The audit trail records it.

    It begins with PUBLIC_URL, or without one with the address of the last flask dev.
    """
    subject, org_id = chosen_subject(**chosen)
    ticket = _create_ticket(subject, org_id, is_user=chosen["user"] is not None)
    url = link_url(current_config().public_url or local_address(), ticket)
    print_text(url, {"url": url, "subject": subject, "org_id": org_id}, as_json=as_json)


@platform_transaction()
def _create_ticket(subject: str, org_id: str | None, *, is_user: bool) -> str:
    """The link's secret. The audit row of a user's link is in the trail of the user's tenant."""
    tenant = find_row(Tenant, idp_org_id=org_id) if is_user else None
    add_event(
        "console.link_created",
        target_id=subject,
        tenant_id=tenant.id if tenant else None,
        change=Change({}, {"idp_user_id": subject, "idp_org_id": org_id}),
        actor=SYSTEM_CLI,
    )
    return sessions.create_ticket(LINK, subject=subject, org_id=org_id)
