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
            Tenant.slug == bindparam("base"),
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
    yield from _free(base)


def find_free(name: str) -> str:
    """The first of the :func:`candidates` that no tenant has now, found by one statement."""
    return next(_free(derive(name), with_base=True))


def _free(base: str, *, with_base: bool = False) -> Iterator[str]:
    """``base-2``, ``base-3`` … without those that are taken; first ``base`` if ``with_base``."""
    stem = base[: MAX_LENGTH - 12]
    # A slug has none of LIKE's special characters, so the stem needs no escaping.
    taken = set(FIND_SIMILAR.scalars(base=base, start=f"{stem}-"))
    if with_base and base not in taken:
        yield base
    number = 1
    while True:
        number += 1
        slug = f"{stem}-{number}"
        if slug not in taken:
            yield slug
