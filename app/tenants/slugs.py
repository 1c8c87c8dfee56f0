"""Slugs: a tenant's name as it can stand in a URL."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sqlalchemy import or_, select

from app.extensions import db
from app.tenants.models import Tenant

MAX_LENGTH = 255


def derive(name: str) -> str:
    """Lower-case ASCII letters, digits and single hyphens, at most 255; ``tenant`` if none remain."""
    ascii_name = unicodedata.normalize("NFKD", name[:1000]).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")
    return slug[:MAX_LENGTH].rstrip("-") or "tenant"


def candidates(name: str) -> Iterator[str]:
    """The derived slug, then it with ``-2``, ``-3`` …, leaving out those that are taken now."""
    base = derive(name)
    yield base
    stem = base[: MAX_LENGTH - 12]
    taken = _taken(stem)
    number = 1
    while True:
        number += 1
        slug = f"{stem}-{number}"
        if slug not in taken:
            yield slug


def _taken(stem: str) -> set[str]:
    like_it = or_(Tenant.slug == stem, Tenant.slug.startswith(f"{stem}-", autoescape=True))
    return set(db.session.execute(select(Tenant.slug).where(like_it)).scalars())
