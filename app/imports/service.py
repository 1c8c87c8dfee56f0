"""Imports: store a file, find imports and their faults, end them, remove old files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import IO, Any
from uuid import UUID

from sqlalchemy import bindparam, delete, select

from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, parse_id
from app.core.db.stalled import take_stalled
from app.core.db.statements import Statement
from app.core.db.transactions import savepoint
from app.core.db.writes import insert_row
from app.core.errors import Conflict, NotFound
from app.core.jobs.queues import JOBS, logged_errors
from app.imports import files
from app.imports.models import Import, ImportFault, ImportPiece, ImportState

APPLY_JOB = "app.imports.jobs.apply_import"
LIFETIME = timedelta(days=7)
"""After so long the file and the faults of an import are removed."""
STALLED = timedelta(seconds=30)
TOO_OLD = "It was not completed within 7 days."

_imports = Import.__table__

GET_WITH_FAULTS = Statement(
    "imports.get_with_faults",
    select(Import, ImportFault)
    .outerjoin(ImportFault, ImportFault.import_id == Import.id)
    .where(Import.id == bindparam("import_id"))
    .order_by(ImportFault.line),
)
TAKE_STALLED = take_stalled(Import, "updated_at", STALLED, _imports.c.finished_at.is_(None))
LOCK_OLD = Statement(
    "imports.lock_old",
    select(Import)
    .where(Import.finished_at.is_(None), Import.created_at < bindparam("before"))
    .with_for_update(),
)
_old = select(_imports.c.id).where(_imports.c.created_at < bindparam("before"))
REMOVE_OLD_FILES = Statement(
    "import_pieces.remove_old", delete(ImportPiece).where(ImportPiece.import_id.in_(_old))
)
REMOVE_OLD_FAULTS = Statement(
    "import_faults.remove_old", delete(ImportFault).where(ImportFault.import_id.in_(_old))
)


class ImportFinished(Conflict):
    code = "import_finished"
    detail = "This import is completed, or its file was removed."


def create_import(file: IO[bytes], *, is_queued: bool, actor: Actor) -> Import:
    """Store a file of JSON Lines; with ``is_queued`` a worker applies it."""
    made = insert_row(Import, {"created_by_user_id": actor.id})
    size, lines_total = files.store(made.id, file)
    known = {"size": size, "lines_total": lines_total}
    queries.update_where(Import, {"id": made.id}, known)
    stored: Import = made._replace(**known)
    record_creation("import.created", stored, actor=actor)
    if is_queued:
        JOBS[APPLY_JOB].push(str(stored.id))
    return stored


def get_import(import_id: UUID | str) -> Any:
    """The import's columns and its ``faults``; raises NotFound."""
    found = GET_WITH_FAULTS.all(import_id=parse_id(import_id, Import))
    if not found:
        raise NotFound.of(Import)
    faults = [row.ImportFault for row in found if row.ImportFault.line is not None]
    return SimpleNamespace(**found[0].Import._asdict(), faults=faults)


def list_imports(paging: Paging = FIRST_PAGE, *, filters: Mapping[str, Any] | None = None) -> Page:
    """One page of imports; ``filters`` are values of columns."""
    return paginate(Import, paging, equal=filters)


def resume(import_id: UUID | str) -> Import:
    """Let an import that has failed or was interrupted continue where it ended.

    Raises NotFound, and ImportFinished where it is completed or its file was removed.
    """
    found = queries.lock_row(Import, import_id)
    if found.finished_at is None:
        return found
    is_stored = next(files.read(found.id, found.position), None) is not None
    if found.state != ImportState.FAILED or not is_stored:
        raise ImportFinished
    values = {"state": ImportState.RUNNING.value, "error": "", "finished_at": None}
    resumed, _ = queries.update_row(Import, found, values)
    return resumed


def finish(running: Import, values: Mapping[str, Any], *, error: str = "") -> Import:
    """End a locked import: completed, or failed where there is an ``error``.

    ``values`` are further columns to write. Only the file of a failed import stays stored.
    """
    state = ImportState.FAILED if error else ImportState.COMPLETED
    ended = {**values, "state": state.value, "error": error, "finished_at": utcnow()}
    finished, _ = queries.update_row(Import, running, ended)
    if not error:
        queries.delete_where(ImportPiece, import_id=running.id)
    shown = ("state", "lines_done", "lines_failed", "counts", "error")
    change = Change({"state": running.state}, {name: getattr(finished, name) for name in shown})
    action = "import.failed" if error else "import.completed"
    record(action, finished, change, actor=Actor(running.created_by_user_id))
    return finished


def remove_old() -> None:
    """Remove the files and the faults of old imports; an unfinished import has then failed."""
    before = utcnow() - LIFETIME
    for unfinished in LOCK_OLD.all(before=before):
        with logged_errors("import_not_ended", import_id=str(unfinished.id)), savepoint():
            finish(unfinished, {}, error=TOO_OLD)
    REMOVE_OLD_FILES.execute(before=before)
    REMOVE_OLD_FAULTS.execute(before=before)
