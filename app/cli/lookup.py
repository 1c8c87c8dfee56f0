"""From what an operator types to a row."""

from __future__ import annotations

from uuid import UUID

import click
from sqlalchemy import select

from app.core.db.queries import parse_id
from app.core.errors import NotFound
from app.extensions import db
from app.tenants.models import Tenant
from app.users.models import User


def find_tenant(named: str) -> Tenant:
    """The tenant with this slug or id; a one-sentence refusal where there is none."""
    statement = select(Tenant).where((Tenant.slug == named) | (Tenant.id == _id_in(named)))
    tenant = db.session.execute(statement).scalar()
    if tenant is None:
        raise click.ClickException(f"There is no tenant {named}.")
    return tenant


def find_user(named: str, slug: str | None = None) -> User:
    """The user with this id or e-mail address, of that tenant if one is named.

    A one-sentence refusal where there is none, or more than one.
    """
    statement = select(User).where((User.email == named) | (User.id == _id_in(named)))
    if slug is not None:
        statement = statement.where(User.tenant_id == find_tenant(slug).id)
    found = db.session.execute(statement.limit(2)).scalars().all()
    where = f" in {slug}" if slug else ""
    if not found:
        raise click.ClickException(f"There is no user {named}{where}.")
    if len(found) > 1:
        raise click.ClickException(
            f"Several users are called {named}{where}: name one by id, or add --tenant SLUG."
        )
    return found[0]


def _id_in(named: str) -> UUID | None:
    try:
        return parse_id(named)
    except NotFound:
        return None
