"""Slugs: a tenant's name in a form for URLs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import chain, count

from app.core.db.statements import Statement
from app.core.errors import Invalid
from app.core.validation.messages import refused

MAX_LENGTH = 255
PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"
FIND_SIMILAR = Statement(
    "tenants.find_similar_slugs",
    "SELECT slug FROM tenants WHERE slug = :base OR slug LIKE :pattern",
)


def check(slug: str) -> None:
    """Raise Invalid for a slug that does not match :data:`PATTERN`."""
    if not re.fullmatch(PATTERN, slug):
        loc = ["body", "slug"]
        raise Invalid(refused("string_pattern_mismatch", loc, slug, pattern=PATTERN))


def derive(name: str) -> str:
    """The name's lower-case ASCII letters and digits, with single hyphens; ``tenant`` if none.

    A slug has at most 255 characters.
    """
    ascii_name = unicodedata.normalize("NFKD", name[:1000]).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")
    return slug[:MAX_LENGTH].rstrip("-") or "tenant"


def find_free(name: str, *, reserved: Collection[str] = ()) -> str:
    """The first of the :func:`candidates` that is not ``reserved``."""
    return next(slug for slug in candidates(name) if slug not in reserved)


def candidates(name: str) -> Iterator[str]:
    """The derived slug, then the slug with ``-2``, ``-3`` … except those that are taken.

    It uses one statement.
    """
    base = derive(name)
    stem = base[: MAX_LENGTH - 12].rstrip("-")
    # A slug has none of LIKE's special characters, so the stem needs no escaping.
    taken = set(FIND_SIMILAR.scalars(base=base, pattern=f"{stem}-%"))
    for slug in chain([base], (f"{stem}-{number}" for number in count(2))):
        if slug not in taken:
            yield slug
