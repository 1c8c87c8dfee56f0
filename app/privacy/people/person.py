"""A person: their rows in every tenant, and every id and address they have or had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from app.core.errors import AppError
from app.privacy.identifiers import SUBJECT, Identifiers


class PersonNotFound(AppError):
    """No person has this id, e-mail address or ``idp_user_id``."""

    status = 404


@dataclass(frozen=True)
class Person:
    """A person with their ``idp_user_id`` (``subjects``; several if it was changed).

    ``users`` and ``memberships`` are pairs of a tenant's id and a row's id. ``only_in``: only what
    this tenant has is meant, and ``organization`` is its ``idp_org_id``. ``is_trusted``: without
    what tenants have said, such as the ids and addresses in ``distrusted``.
    """

    subjects: frozenset[str]
    users: tuple[tuple[UUID, UUID], ...]
    memberships: tuple[tuple[UUID, UUID], ...]
    identifiers: Identifiers
    only_in: UUID | None = None
    organization: str | None = None
    is_trusted: bool = False
    distrusted: frozenset[str] = frozenset()

    @property
    def user_ids(self) -> list[UUID]:
        return [user_id for _, user_id in self.users]

    def covers(self, other: Person) -> bool:
        """Whether all that is known of ``other`` is known here."""
        return (
            set(other.users) <= set(self.users)
            and set(other.memberships) <= set(self.memberships)
            and other.identifiers.ids <= self.identifiers.ids | self.distrusted
            and other.identifiers.addresses <= self.identifiers.addresses | self.distrusted
        )

    @property
    def in_rows(self) -> Identifiers:
        """The person's identifiers in our rows, whose ``id`` and ``user_id`` are our own ids.

        The id of somebody else's membership may be equal to one of theirs.
        """
        return replace(self.identifiers, ids=self.subjects, fields=SUBJECT)
