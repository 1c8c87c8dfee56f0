"""The background jobs of invitations: mail them, and delete old ones."""

from __future__ import annotations

from datetime import timedelta

from app.config import current_config
from app.core.clock import utcnow
from app.core.db.batches import in_batches
from app.core.db.statements import Statement
from app.core.jobs.queues import Queue, job
from app.invitations import mail

DELETE_OLD = Statement(
    "invitations.delete_old",
    "DELETE FROM invitations WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM invitations"
    " WHERE expires_at < :before ORDER BY expires_at LIMIT :limit)",
    prepare=False,
)


@job(queue=Queue.MAILS, every=60)
def send_mails() -> None:
    """Mail the invitations that are due, one after the other; several workers may do so."""
    while mail.deliver_next():
        pass


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_invitations() -> None:
    """Delete the invitations that have ended ``INVITATION_DAYS`` ago."""
    before = utcnow() - timedelta(days=current_config().invitation_days)
    in_batches(lambda limit: DELETE_OLD.execute(before=before, limit=limit))
