"""Mails of invitations, sent by the server of ``SMTP_URL`` and recorded as those of providers are.

The mail of an attempt is claimed in one transaction, sent outside, and recorded in another. After a
crash between them it is sent again, with the same ``Message-ID``.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from email_validator import validate_email
from jinja2 import Environment, PackageLoader, select_autoescape

from app.config import current_config
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.emails import service as emails
from app.emails.events import EmailEvent, EmailKind
from app.emails.models import Suppression
from app.emails.suppressions import normalized
from app.invitations.derived_tokens import token_of, url_of
from app.invitations.models import Invitation
from app.tenants.models import Tenant

TIMEOUT = 15.0  # seconds that the server may take for one answer
WAITS = (60, 300, 1800, 7200, 6 * 3600, 24 * 3600)
"""Seconds before each further attempt; a job looks once a minute."""
MOST_A_DAY = 10  # mails to one address, of all tenants together
LONGEST_NAME = 100  # characters of a tenant's name in a mail
PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
TEMPLATES = Environment(loader=PackageLoader("app.invitations"), autoescape=select_autoescape())

COUNT_OF_DAY = Statement(
    "email_messages.count_of_day",
    "SELECT count(*) FROM email_messages WHERE address = :address AND source = 'smtp'"
    " AND created_at > now() - INTERVAL '1 day'",
)
TAKE_NEXT = Statement(
    "invitations.take_next_mail",
    """
    UPDATE invitations SET mails = mails + 1,
        mail_at = now() + (CAST(:waits AS integer[]))[mails + 1] * INTERVAL '1 second'
    WHERE (tenant_id, id) = (
        SELECT tenant_id, id FROM invitations
        WHERE mail_at <= now()
            AND expires_at > now() AND accepted_at IS NULL AND revoked_at IS NULL
        ORDER BY mail_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING *
    """,
)
"""Counts the attempt; ``mail_at`` is when the next one is due, NULL after the last one."""


def deliver_next() -> bool:
    """Make the attempt that is due for longest; False if none is due."""
    with tenancy.platform_transaction():
        invitation: Any = TAKE_NEXT.first(waits=list(WAITS))
        if invitation is None:
            return False
        tenant = queries.get_row(Tenant, invitation.tenant_id)
        address = {"address": normalized(invitation.email), "scope": ""}
        refusal = queries.find_row(Suppression, **address, is_active=True) and "suppressed"
        of_day = COUNT_OF_DAY.scalar(address=address["address"])
        if invitation.mails == 1 and of_day >= MOST_A_DAY:
            refusal = f"over {MOST_A_DAY} mails a day"
    token = token_of(invitation)
    if token is None:
        return True
    message = compose(invitation, tenant.name, url_of(token) or "")
    kind, said = (EmailKind.REJECTED, refusal) if refusal else send(message)
    if kind is EmailKind.SCHEDULED and invitation.mail_at is None:
        kind = EmailKind.REJECTED
    event = EmailEvent(
        kind=kind,
        message_id=message["Message-ID"],
        recipient=invitation.email,
        occurred_at=utcnow(),
        reason=said,
        tags=("invitation",),
    )
    ordinal = invitation.rotation * 100 + invitation.mails
    with tenancy.platform_transaction():
        if kind is not EmailKind.SCHEDULED:
            _end(invitation)
        emails.record([event], source="smtp", webhook_event_id=invitation.id, first_ordinal=ordinal)
    return True


def compose(invitation: Invitation, tenant_name: str, url: str) -> EmailMessage:
    """The mail, as plain text and as HTML; the tenant's name adds no header and no HTML."""
    config = current_config()
    words = {
        "tenant": " ".join(tenant_name.split())[:LONGEST_NAME],
        "product": config.console_name,
        "url": url,
        "end": f"{invitation.expires_at:%d %B %Y, %H:%M} UTC",
    }
    domain = parseaddr(config.mail_from)[1].rpartition("@")[2]
    message = EmailMessage()
    invited = validate_email(invitation.email, check_deliverability=False)
    message["From"] = config.mail_from
    message["To"] = f"{invited.local_part}@{invited.ascii_domain}"
    message["Subject"] = f"{words['tenant']} invites you to {words['product']}"
    message["Date"] = format_datetime(utcnow())
    message["Message-ID"] = f"<{invitation.id}.{invitation.rotation}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    text, html = (
        TEMPLATES.get_template(f"invitation.{end}").render(words) for end in ("txt", "html")
    )
    message.set_content(text)
    message.add_alternative(html, subtype="html")
    return message


def send(message: EmailMessage) -> tuple[EmailKind, str]:
    """Send the mail to the server; returns its status and the server's answer.

    A fault is not raised: REJECTED is permanent, and after SCHEDULED another attempt may succeed.
    """
    try:
        with _server() as server:
            server.send_message(message)
        return EmailKind.SENT, ""
    except smtplib.SMTPDataError as fault:
        code, answer = fault.smtp_code, fault.smtp_error
    except smtplib.SMTPRecipientsRefused as fault:
        [(code, answer)] = fault.recipients.values()
    except smtplib.SMTPNotSupportedError as fault:  # of an address that is not ASCII
        return EmailKind.REJECTED, str(fault)
    except (smtplib.SMTPException, OSError) as fault:
        return EmailKind.SCHEDULED, f"{type(fault).__name__}: {fault}"[:500]
    said = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    kind = EmailKind.REJECTED if code >= 500 else EmailKind.SCHEDULED
    return kind, f"{code} {said}".replace("\0", "�")[:500]


@contextmanager
def _server() -> Iterator[smtplib.SMTP]:
    """A connection to the server of ``SMTP_URL``, encrypted and signed in."""
    url = urlsplit(current_config().smtp_url)
    tls = ssl.create_default_context()
    connect = partial(smtplib.SMTP_SSL, context=tls) if url.scheme == "smtps" else smtplib.SMTP
    with connect(url.hostname or "", url.port or PORTS[url.scheme], timeout=TIMEOUT) as server:
        if url.scheme == "smtp":
            server.starttls(context=tls)
        if url.username:
            server.login(unquote(url.username), unquote(url.password or ""))
        yield server


def _end(invitation: Invitation) -> None:
    """Make no further attempt, unless the invitation has been resent since."""
    key = {"tenant_id": invitation.tenant_id, "id": invitation.id, "rotation": invitation.rotation}
    queries.update_where(Invitation, key, {"mail_at": None})
