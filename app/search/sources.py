"""The searched fields of each entity type, and how a result shows a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, SQLColumnExpression, Text, cast, func, true

from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.emails.models import EmailMessage
from app.search.models import EntityType
from app.search.terms import MAX_TEXT, address_terms, fold, id_terms, name_terms
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User

ENDED = "ended"  # the status class of a subscription that is not active any more


@dataclass(frozen=True)
class SearchField:
    """A text of a row: its columns with a space between them, and how it becomes terms."""

    name: str
    columns: tuple[str, ...]
    terms_of: Callable[[str], list[str]]

    def text_of(self, row: Any) -> str:
        return " ".join(str(getattr(row, name)) for name in self.columns)[:MAX_TEXT]

    def expression(self, model: Any) -> ColumnElement[str]:
        """The text of the field in SQL."""
        texts = [cast(getattr(model, name), Text) for name in self.columns]
        joined = texts[0] if len(texts) == 1 else func.concat_ws(" ", *texts)
        return func.left(joined, MAX_TEXT)


@dataclass(frozen=True)
class Source:
    """One entity type; ``title``, ``subtitle`` and ``is_active`` are SQL expressions."""

    model: Any
    fields: tuple[SearchField, ...]
    title: ColumnElement[str]
    subtitle: ColumnElement[str]
    is_active: SQLColumnExpression[bool]

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(name for field in self.fields for name in field.columns)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The columns that :meth:`terms_of` and :meth:`tenant_id_of` need, and ``id``."""
        return tuple(sorted({"id", self.tenant_column or "id", *self.columns}))

    @cached_property
    def tenant_column(self) -> str | None:
        """The column with the tenant's id; None where rows belong to no tenant."""
        if self.model is Tenant:
            return "id"
        return "tenant_id" if "tenant_id" in self.model.__table__.columns else None

    def tenant_id_of(self, row: Any) -> UUID:
        name = self.tenant_column
        return PLATFORM_TENANT_ID if name is None else getattr(row, name)

    def terms_of(self, row: Any) -> Iterator[str]:
        """The terms of a row; one may occur twice."""
        for field in self.fields:
            yield from field.terms_of(fold(field.text_of(row)))


def _field(terms_of: Callable[[str], list[str]], name: str, *columns: str) -> SearchField:
    return SearchField(name, columns or (name,), terms_of)


_name, _address, _id = (partial(_field, one) for one in (name_terms, address_terms, id_terms))


def _shown(text: SQLColumnExpression[str]) -> ColumnElement[str]:
    return func.left(text, MAX_TEXT)


_full_name = func.btrim(func.concat_ws(" ", _shown(User.first_name), _shown(User.last_name)))
SOURCES = {
    EntityType.TENANT: Source(
        Tenant,
        (
            _name("name"),
            _name("slug"),
            _id("idp_org_id"),
            _address("primary_contact_email"),
            _id("id"),
        ),
        title=_shown(Tenant.name),
        subtitle=_shown(Tenant.slug),
        is_active=Tenant.is_active,
    ),
    EntityType.USER: Source(
        User,
        (
            _name("name", "first_name", "last_name"),
            _address("email"),
            _id("idp_user_id"),
            _id("id"),
        ),
        title=func.coalesce(
            func.nullif(_full_name, ""),
            func.nullif(_shown(User.email), ""),
            _shown(User.idp_user_id),
        ),
        subtitle=_shown(User.email),
        is_active=User.is_active,
    ),
    EntityType.SUBSCRIPTION: Source(
        Subscription,
        (
            _id("bp_subscription_id"),
            _id("bp_customer_id"),
            _id("bp_plan_id"),
            _address("billing_email"),
            _id("id"),
        ),
        title=_shown(Subscription.bp_subscription_id),
        subtitle=func.concat_ws(
            ", ", _shown(Subscription.plan_name), _shown(Subscription.bp_status)
        ),
        is_active=Subscription.status_class != ENDED,
    ),
    EntityType.EMAIL_MESSAGE: Source(
        EmailMessage,
        (_address("recipient", "address"), _id("message_id"), _id("id")),
        title=_shown(EmailMessage.address),
        subtitle=func.concat_ws(", ", EmailMessage.state, EmailMessage.source),
        is_active=true(),
    ),
}
FIELD_NAMES = tuple(
    dict.fromkeys(field.name for source in SOURCES.values() for field in source.fields)
)
