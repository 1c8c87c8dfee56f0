"""Deleting a tenant: every row that belongs to it, in batches.

Each batch is a transaction of its own that also stores how far the deletion is. One that is killed
continues there. A second worker leaves the tenant to the first. No other tenant waits for a lock.

The stages are those of :class:`app.tenants.models.DeletionStage`. First the ``idp_org_id`` becomes
a tombstone, so the identity provider's events add no rows. Then what global tables hold about the
tenant and its people goes: payloads of webhooks, e-mail records, people set aside, stored answers.
What is about people and addresses that another tenant has too stays. Last, the tenant's own rows
go, in the order of the foreign keys. One audit row of the platform and its event stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import accumulate
from uuid import UUID

from app.audit.service import add_event
from app.auth.models import ConsoleSession, ConsoleTicket
from app.billing.snapshots import BillingEvent
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.list_cursors import EPOCH
from app.core.db.pages import MAX_BYTES
from app.core.db.queries import Change
from app.core.db.writes import writes
from app.emails.events import EmailEvent
from app.emails.suppressions import normalized
from app.extensions import db
from app.identity_sync.events import UserEvent
from app.imports.models import ImportFault
from app.inbox.providers import IDENTITY, get_provider
from app.inbox.providers.payloads import Unreadable, Unwanted
from app.inbox.signatures.samples import is_sample
from app.privacy.identifiers import ANY_ID, Identifiers
from app.privacy.tenants import deletion_statements as statements
from app.search import writer as terms
from app.search.models import EntityType
from app.tenants.models import DeletionStage, Tenant, TenantDeletion
from app.users.emails import email_key

BATCH = 1000  # rows
PEOPLE = 200
PAYLOADS = 500
LEFT = ("id", "created_at", "updated_at", "idp_org_id", "plan_name", "is_active")
"""What the event of the deletion still says about the tenant."""
BEFORE_ALL = UUID(int=0)
SOURCES = [provider.name for provider in IDENTITY.providers]


@dataclass
class Deletion:
    """How far the deletion of a tenant is; stored after each batch."""

    tenant_id: UUID
    idp_org_id: str
    requested_by: str
    stage: DeletionStage
    last_moment: datetime | None
    last_id: UUID | None
    deleted_rows: dict[str, int]

    def count(self, table: str, rows: int) -> None:
        """Count deleted rows of the table."""
        if rows:
            self.deleted_rows[table] = self.deleted_rows.get(table, 0) + rows

    def enter(self, stage: DeletionStage) -> None:
        """Begin with the first row of a stage."""
        self.stage, self.last_moment, self.last_id = stage, None, None


def delete_batch(tenant_id: UUID) -> bool:
    """Delete the next rows of a tenant whose time has come; False if there is nothing to do.

    There is nothing to do for a tenant that is gone, was restored, or is worked on by another
    worker at this moment.
    """
    return retries.run(partial(_run_batch, tenant_id))


@cache
def tables() -> tuple[str, ...]:
    """The tables that have a ``tenant_id``, in the order in which their rows can be deleted.

    The row of the deletion itself goes with the tenant.
    """
    return tuple(
        table.name
        for table in reversed(db.metadata.sorted_tables)
        if "tenant_id" in table.c and table is not TenantDeletion.__table__
    )


def _run_batch(tenant_id: UUID) -> bool:
    tenancy.enter(tenancy.PLATFORM)
    row = statements.LOCK_DUE.first(tenant_id=tenant_id, now=utcnow())
    if row is None:
        return False
    deletion = Deletion(
        tenant_id,
        row.idp_org_id,
        row.requested_by,
        DeletionStage(row.stage),
        row.last_moment,
        row.last_id,
        dict(row.deleted_rows),
    )
    match deletion.stage:
        case DeletionStage.WAITING:
            _bury(row.idp_org_id)
            deletion.enter(DeletionStage.PAYLOADS)
        case DeletionStage.PAYLOADS:
            _remove_payloads(deletion)
        case DeletionStage.PEOPLE:
            _delete_people(deletion)
        case DeletionStage.ANSWERS:
            _delete_answers(deletion)
        case DeletionStage.ROWS if _delete_rows(deletion):
            return False
    changes = {
        "stage": deletion.stage.value,
        "last_moment": deletion.last_moment,
        "last_id": deletion.last_id,
        "deleted_rows": deletion.deleted_rows,
        "worked_at": utcnow(),
    }
    queries.update_where(TenantDeletion, {"tenant_id": tenant_id}, changes)
    return True


def _bury(idp_org_id: str) -> None:
    """Add the tombstone. That of a sample would be useless, because its id is never used again."""
    if not is_sample(idp_org_id):
        statements.BURY.execute(idp_org_id=idp_org_id)


def _remove_payloads(deletion: Deletion) -> None:
    """Read the next stored payloads of webhooks, and remove those about the tenant's people."""
    found = statements.NEXT_PAYLOADS.all(
        last_moment=deletion.last_moment or EPOCH,
        last_id=deletion.last_id or BEFORE_ALL,
        limit=PAYLOADS,
    )
    if not found:
        deletion.enter(DeletionStage.PEOPLE)
        return
    sizes = list(accumulate(row.size for row in found))
    chosen = found[: max(1, sum(size <= MAX_BYTES for size in sizes))]
    events = statements.READ_PAYLOADS.all(ids=[row.id for row in chosen])
    ids = list(_about_tenant(events, deletion))
    if ids:
        deletion.count("webhook_events", statements.REMOVE_PAYLOADS.execute(ids=ids))
    deletion.last_moment, deletion.last_id = chosen[-1].processed_at, chosen[-1].id


def _about_tenant(events: Sequence[tuple[UUID, str, bytes]], deletion: Deletion) -> Iterator[UUID]:
    """The ids of the events (id, source, body) that are about the organization or its own people.

    That includes its subscriptions and customers at billing providers.

    People that another tenant has too are not its own.
    """
    idp_org_id = deletion.idp_org_id
    organization = Identifiers(frozenset({idp_org_id}), frozenset(), fields=ANY_ID)
    people = {event_id: _subjects_of(source, body) for event_id, source, body in events}
    named = [name for names in people.values() for name in names]
    own: set[str] = set()
    if named:
        of_tenant = {"tenant_id": deletion.tenant_id, "names": named}
        own |= set(statements.OWN_SUBJECTS.scalars(**of_tenant))
        own |= set(statements.OWN_ADDRESSES.scalars(**of_tenant))
        own |= set(statements.OWN_SUBSCRIPTIONS.scalars(tenant_id=deletion.tenant_id))
    for event_id, _, body in events:
        names_organization = idp_org_id.encode() in body  # quick; most events do not
        if not own.isdisjoint(people[event_id]) or (
            names_organization and organization.are_in_body(body)
        ):
            yield event_id


def _subjects_of(source: str, body: bytes) -> set[str]:
    """The subjects of an event: people by id or ``email_key``, subscriptions and customers by id.

    Nothing if it cannot be read.
    """
    names: set[str] = set()
    try:
        parts = get_provider(source).adapt(body)
    except (Unreadable, Unwanted):
        return names
    for part in parts:
        if isinstance(part, UserEvent):
            names.add(part.object_id)
        elif isinstance(part, EmailEvent):
            names.add(email_key(part.recipient.strip()))
        elif isinstance(part, BillingEvent):
            snapshot, customer = part.snapshot, part.customer
            ids = (
                part.subscription_id,
                snapshot and snapshot.customer_id,
                customer and customer.id,
            )
            names |= {f"{source} {one}" for one in ids if one}
    return names


def _delete_people(deletion: Deletion) -> None:
    """Delete the e-mail records and the provider's data of the next people of the tenant."""
    tenant_id = deletion.tenant_id
    people = statements.NEXT_PEOPLE.all(
        tenant_id=tenant_id, last_id=deletion.last_id or BEFORE_ALL, limit=PEOPLE
    )
    if not people:
        deletion.enter(DeletionStage.ANSWERS)
        return
    emails = [email for person in people for email in (person.email, *person.former_emails)]
    by_key = {email_key(email): normalized(email) for email in emails if email}
    others = statements.OTHERS_ADDRESSES.scalars(tenant_id=tenant_id, keys=list(by_key))
    addresses = [by_key[key] for key in by_key.keys() - set(others)]
    deleted = {
        table: statement.all(addresses=addresses, limit=BATCH)
        for table, statement in statements.DELETE_MAILS.items()
    }
    with writes() as w:
        terms.remove(EntityType.EMAIL_MESSAGE, *deleted["email_messages"], into=w)
    counts = {table: len(rows) for table, rows in deleted.items()}
    counts["email_events"] = statements.DELETE_EMAIL_EVENTS.scalar(
        tenant_id=tenant_id, addresses=addresses, limit=BATCH
    )
    for table, count in counts.items():
        deletion.count(table, count)
    for statement in statements.DELETE_MAILS_FROM_FEED:
        statement.execute(addresses=addresses)
    if BATCH in counts.values():  # there may be more
        return
    named = [person.idp_user_id for person in people]
    subjects = statements.OWN_SUBJECTS.scalars(tenant_id=tenant_id, names=named)
    count = statements.DELETE_PEOPLE.execute(
        sources=SOURCES, subjects=subjects, idp_org_id=deletion.idp_org_id
    )
    deletion.count("identity_objects", count)
    deletion.last_id = people[-1].id


def _delete_answers(deletion: Deletion) -> None:
    """Delete faults of imports, sessions, and the next stored answers about the tenant."""
    idp_org_id = deletion.idp_org_id
    deletion.count("import_faults", queries.delete_where(ImportFault, idp_org_id=idp_org_id))
    for model in (ConsoleSession, ConsoleTicket):
        deletion.count("console_sessions", queries.delete_where(model, org_id=idp_org_id))
    count = statements.DELETE_ANSWERS.execute(
        tenant_id=str(deletion.tenant_id), idp_org_id=idp_org_id, limit=BATCH
    )
    deletion.count("idempotency_keys", count)
    if count < BATCH:
        deletion.enter(DeletionStage.ROWS)


def _delete_rows(deletion: Deletion) -> bool:
    """Delete the tenant's next rows; if there are no more, the tenant itself, and return True."""
    left = _delete_at_most(BATCH, deletion)
    if left < BATCH:
        return False
    tenant = queries.lock_row(Tenant, deletion.tenant_id)  # waits for transactions that add rows
    deletion.idp_org_id = tenant.idp_org_id
    if _delete_at_most(BATCH, deletion) == 0:
        return False
    _bury(tenant.idp_org_id)
    queries.delete_row(Tenant, tenant)
    deletion.count("tenants", 1)
    add_event(
        "tenant.deleted",
        target_id=str(tenant.id),
        tenant_id=None,
        change=Change({"idp_org_id": tenant.idp_org_id}, {"rows": deletion.deleted_rows}),
        actor=Actor(deletion.requested_by),
        data={name: getattr(tenant, name) for name in LEFT},
    )
    return True


def _delete_at_most(limit: int, deletion: Deletion) -> int:
    """Delete rows table by table; returns what is left of the limit."""
    count = statements.DELETE_ORGANIZATION.execute(
        sources=SOURCES, idp_org_id=deletion.idp_org_id, limit=limit
    )
    deletion.count("identity_objects", count)
    left = limit - count
    for table in tables():
        if left > 0:
            count = statements.DELETE_BATCH.scalar(
                tenant_id=deletion.tenant_id, table=table, limit=left
            )
            deletion.count(table, count)
            left = max(left - count, 0)
    return left
