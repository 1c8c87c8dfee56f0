"""Mails of invitations, sent by the server of ``SMTP_URL`` and recorded as those of providers are.

The mail of an attempt is claimed in one transaction, sent outside, and recorded in another. After a
crash between them it is sent again, with the same ``Message-ID``.
"""

from __future__ import annotations

import html
import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

from sqlalchemy import bindparam, exists, func, select

from app.config import current_config
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.emails import service as emails
from app.emails.events import EmailEvent, EmailKind
from app.emails.models import Suppression
from app.emails.suppressions import normalized
from app.invitations.derived_tokens import token_of, url_of
from app.invitations.models import STATE, Invitation, InvitationState
from app.tenants.models import Tenant

log = logging.getLogger(__name__)

SOURCE = "smtp"
TIMEOUT = 15.0  # seconds that the server may take for one answer
WAITS = (60, 300, 1800, 7200, 6 * 3600, 24 * 3600)
"""Seconds before each further attempt."""
MAX_ATTEMPTS = len(WAITS) + 1
LONGEST_NAME = 100  # characters of a tenant's name in a mail
PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}

FIND_DUE = Statement(
    "invitations.find_due_mails",
    select(Invitation.id)
    .where(Invitation.mail_at <= func.now())
    .order_by(Invitation.mail_at)
    .limit(100),
)
LOCK_DUE = Statement(
    "invitations.lock_due_mail",
    select(Invitation, STATE, Tenant.name)
    .join(Tenant, Tenant.id == Invitation.tenant_id)
    .where(Invitation.id == bindparam("id"), Invitation.mail_at <= func.now())
    .with_for_update(of=Invitation, skip_locked=True),
)
IS_SUPPRESSED = Statement(
    "suppressions.is_suppressed",
    select(
        exists().where(
            Suppression.address == bindparam("address"),
            Suppression.scope == "",
            Suppression.is_active,
        )
    ),
)

TEXT = """\
{tenant} invites you to {product}.

To join, open this page and sign in with this e-mail address:

{url}

The invitation ends on {end}. If you did not expect it, you can ignore this mail.
"""
HTML = """\
<!doctype html>
<html lang="en">
<body style="font-family: sans-serif; line-height: 1.5">
<p><strong>{tenant}</strong> invites you to {product}.</p>
<p>To join, open this page and sign in with this e-mail address:</p>
<p><a href="{url}">{url}</a></p>
<p>The invitation ends on {end}. If you did not expect it, you can ignore this mail.</p>
</body>
</html>
"""


class Outcome(NamedTuple):
    """What has become of an attempt; SCHEDULED: it is to be made again."""

    kind: EmailKind
    reason: str = ""
    response: str = ""


def deliver(invitation_id: UUID) -> float | None:
    """Make the attempt that is due; the seconds until the next one, or None for none."""
    with tenancy.platform_transaction():
        found = LOCK_DUE.first(id=invitation_id)
        if found is None:
            return None
        invitation: Invitation = found.Invitation
        token, attempt = token_of(invitation), invitation.mails + 1
        if found.state != InvitationState.PENDING or token is None:
            _set(invitation, mail_at=None)
            return None
        wait = WAITS[min(attempt, len(WAITS)) - 1]
        _set(invitation, mails=attempt, mail_at=utcnow() + timedelta(seconds=wait))
        is_suppressed = IS_SUPPRESSED.scalar(address=normalized(invitation.email))
    message = compose(invitation, found.name, url_of(token) or "")
    outcome = Outcome(EmailKind.REJECTED, "suppressed") if is_suppressed else send(message)
    if outcome.kind is EmailKind.SCHEDULED and attempt == MAX_ATTEMPTS:
        outcome = outcome._replace(kind=EmailKind.REJECTED)
    log.info("invitation_mail", extra={"outcome": outcome.kind.value, "attempt": attempt})
    is_over = outcome.kind is not EmailKind.SCHEDULED
    with tenancy.platform_transaction():
        if is_over:
            _set(invitation, mail_at=None)
        _record(invitation, attempt, message["Message-ID"], outcome)
    return None if is_over else wait


def compose(invitation: Invitation, tenant_name: str, url: str) -> EmailMessage:
    """The mail, as plain text and as HTML. It has no line breaks and no HTML of the tenant."""
    config = current_config()
    name = "".join(one if one.isprintable() else " " for one in tenant_name)[:LONGEST_NAME]
    words = {
        "tenant": " ".join(name.split()),
        "product": config.console_name,
        "url": url,
        "end": f"{invitation.expires_at:%d %B %Y, %H:%M} UTC",
    }
    domain = parseaddr(config.mail_from)[1].rpartition("@")[2]
    message = EmailMessage()
    message["From"], message["To"] = config.mail_from, invitation.email
    message["Subject"] = f"{words['tenant']} invites you to {words['product']}"
    message["Date"] = format_datetime(utcnow())
    message["Message-ID"] = f"<{invitation.id}.{invitation.rotation}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(TEXT.format(**words))
    escaped = {name: html.escape(value) for name, value in words.items()}
    message.add_alternative(HTML.format(**escaped), subtype="html")
    return message


def send(message: EmailMessage) -> Outcome:
    """Hand the mail to the server. No fault is raised: each is an outcome."""
    try:
        with _server() as server:
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as fault:
        [(code, response)] = fault.recipients.values()
        return _refused(code, response)
    except smtplib.SMTPDataError as fault:
        return _refused(fault.smtp_code, fault.smtp_error)
    except smtplib.SMTPNotSupportedError as fault:
        return Outcome(EmailKind.REJECTED, str(fault))
    except (smtplib.SMTPException, OSError) as fault:
        return Outcome(EmailKind.SCHEDULED, f"{type(fault).__name__}: {fault}"[:500])
    return Outcome(EmailKind.SENT)


def _refused(code: int, response: bytes | str) -> Outcome:
    """What the server's refusal of the recipient or the mail means: 5xx is permanent."""
    text = response.decode(errors="replace") if isinstance(response, bytes) else response
    kind = EmailKind.REJECTED if code >= 500 else EmailKind.SCHEDULED
    return Outcome(kind, response=f"{code} {text}".replace("\0", "�")[:500])


@contextmanager
def _server() -> Iterator[smtplib.SMTP]:
    """A connection to the server of ``SMTP_URL``, encrypted and signed in."""
    url = urlsplit(current_config().smtp_url)
    place = url.hostname or "", url.port or PORTS[url.scheme]
    tls = ssl.create_default_context()
    opened = (
        smtplib.SMTP_SSL(*place, timeout=TIMEOUT, context=tls)
        if url.scheme == "smtps"
        else smtplib.SMTP(*place, timeout=TIMEOUT)
    )
    with opened as server:
        if url.scheme == "smtp":
            server.starttls(context=tls)
        if url.username:
            server.login(unquote(url.username), unquote(url.password or ""))
        yield server


def _set(invitation: Invitation, **values: Any) -> None:
    """Set columns that clients do not see, unless the invitation has been sent again meanwhile."""
    key = {"tenant_id": invitation.tenant_id, "id": invitation.id, "rotation": invitation.rotation}
    queries.update_where(Invitation, key, values)


def _record(invitation: Invitation, attempt: int, message_id: str, outcome: Outcome) -> None:
    event = EmailEvent(
        kind=outcome.kind,
        message_id=message_id,
        recipient=invitation.email,
        occurred_at=utcnow(),
        reason=outcome.reason,
        response=outcome.response,
        tags=("invitation",),
    )
    ordinal = invitation.rotation * 100 + attempt
    emails.record([event], source=SOURCE, webhook_event_id=invitation.id, first_ordinal=ordinal)
