"""The background jobs that mail invitations."""

from __future__ import annotations

from uuid import UUID

from app.core.db import tenancy
from app.core.db.batches import delete_in_batches
from app.core.jobs.queues import Queue, job
from app.invitations import mail, service


@job(queue=Queue.MAILS, timeout=60)
def send_mail(invitation_id: str) -> None:
    """Mail an invitation, unless another worker has; after a temporary fault again later."""
    wait = mail.deliver(UUID(invitation_id))
    if wait is not None:
        send_mail.push(invitation_id, delay=wait)


@job(queue=Queue.MAILS, every=60)
def resume_mails() -> None:
    """Queue the mails that are due and whose job was lost."""
    with tenancy.platform_transaction():
        for invitation_id in mail.FIND_DUE.scalars():
            send_mail.push(str(invitation_id))


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_invitations() -> None:
    """Delete the invitations that have ended ``INVITATION_DAYS`` ago."""
    delete_in_batches(service.delete_old)
