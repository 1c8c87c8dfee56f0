"""Slugs: a tenant's name as it can stand in a URL."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sqlalchemy import bindparam, or_, select

from app.core.db.statements import Statement
from app.tenants.models import Tenant

MAX_LENGTH = 255
FIND_SIMILAR = Statement(
    "tenants.find_similar_slugs",
    select(Tenant.slug).where(
        or_(
            Tenant.slug == bindparam("stem"),
            Tenant.slug.startswith(bindparam("start"), autoescape=False),
        )
    ),
)


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
    # A slug has none of LIKE's special characters, so the stem needs no escaping.
    taken = set(FIND_SIMILAR.scalars(stem=stem, start=f"{stem}-"))
    number = 1
    while True:
        number += 1
        slug = f"{stem}-{number}"
        if slug not in taken:
            yield slug
