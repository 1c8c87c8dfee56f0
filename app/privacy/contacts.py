"""Where a person may be a company's contact."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, func, select

from app.privacy.person import Person
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant

CONTACTS: dict[type[Any], tuple[str, ...]] = {
    Tenant: ("primary_contact_email", "primary_contact_name", "primary_contact_phone"),
    Subscription: ("billing_email", "billing_contact_name", "billing_phone"),
}
"""The person whose address is in the first column is the contact that the others describe."""
CONTACT_FIELDS = frozenset(name for names in CONTACTS.values() for name in names)


def is_contact(table: Table, name: str, person: Person) -> Any:
    """The condition that the person's address stands in the column."""
    return func.lower(table.c[name]).in_(sorted(person.identifiers.addresses))


def contact_targets(session: Connection, person: Person) -> dict[str, list[str]]:
    """The tenants and subscriptions whose contact the person is now, as the audit trail names them."""
    found = {}
    for model, (address, *_) in CONTACTS.items():
        table: Table = model.__table__
        chosen = select(table.c.id).where(is_contact(table, address, person))
        found[model.__tablename__.removesuffix("s")] = [str(one) for one in session.scalars(chosen)]
    return found
