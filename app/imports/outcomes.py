"""The outcomes of the lines of an import, and the errors of refused lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import psycopg2

from app.core.errors import AppError, Conflict, Entry, Invalid, error, value_error
from app.flags import overrides
from app.imports.lines import Line
from app.memberships import directories
from app.memberships.owners import LastOwner
from app.subscriptions.service import ManagedByProvider
from app.tenants.service import TenantDeleting

REFUSED_BY_POSTGRES = (Conflict, psycopg2.IntegrityError, psycopg2.DataError)
OF_ONE_LINE = (
    Invalid,
    LastOwner,
    directories.ManagedByDirectory,
    TenantDeleting,
    overrides.TooManyOverrides,
    ManagedByProvider,
)
"""Errors that are raised before anything of the line is written."""


class Outcome(StrEnum):
    """The outcome of a line."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """A line with its outcome, and the errors if it has failed."""

    line: Line
    outcome: Outcome
    errors: Sequence[Entry] = ()


def entries(fault: Exception | None) -> list[Entry]:
    """The errors of a line, in the form of a 422; those of a conflict have its code as type."""
    if isinstance(fault, Invalid):
        return fault.errors
    if isinstance(fault, AppError) and fault.code:
        return [error(["body"], fault.code, fault.detail)]
    return [value_error(["body"], "the line cannot be stored")]
