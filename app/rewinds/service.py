"""Rewinds: preview, create, find, end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.stalled import take_stalled
from app.core.db.statements import Statement
from app.core.db.writes import insert_row, with_defaults
from app.core.errors import Conflict, Invalid, value_error
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.core.validation.messages import MAX_ENTRIES
from app.history import past
from app.rewinds.comparing import SET_MOMENT, Difference, compare, find_changed, left_out
from app.rewinds.kinds import KINDS
from app.rewinds.models import Rewind, RewindState
from app.tenants.models import Tenant
from app.tenants.service import TenantDeleting

REWIND_JOB = "app.rewinds.jobs.rewind"
STALLED = timedelta(seconds=30)
NOW = 2**62  # after all positions
SHOWN = 100  # of a preview
NAMES = ("slug", "email", "field_key", "key", "flag_key", "bp_subscription_id")
MAX_COMPARED, COMPARED = 10_000, 500  # rows of a preview, and of one statement

FIND_KNOWN = Statement(
    "rewinds.find_known",
    "SELECT DISTINCT row_id FROM audit_positions WHERE tenant_id = :tenant_id"
    " AND target_type = ANY (CAST(:target_types AS text[]))"
    " AND row_id = ANY (CAST(:ids AS uuid[]))",
)
TAKE_STALLED = take_stalled(Rewind, "updated_at", STALLED, Rewind.__table__.c.finished_at.is_(None))


class RewindRunning(Conflict):
    code = "rewind_running"
    detail = "A rewind of this tenant is running; wait until it has ended."


CONFLICTS = {"uq_rewinds_unfinished": RewindRunning}
Counts = dict[str, dict[str, int]]


def preview(tenant_id: UUID | str, wanted: Mapping[str, Json], *, actor: Actor) -> Any:
    """What a rewind would do now; nothing is written. Raises what :func:`create` does."""
    tenant = queries.get_row(Tenant, tenant_id)  # a lock would hold up its writers for seconds
    queries.check_precondition(tenant)
    values = with_defaults(Rewind.__table__, _check(tenant, wanted, actor))
    rewind = SimpleNamespace(**{**values, "position": NOW})
    rest, found, counts = MAX_COMPARED, list[Difference](), Counts()
    for kind in rewind.kinds:
        after = None
        while rest > 0 and (changed := find_changed(kind, rewind, after, min(COMPARED, rest))):
            found += compare(kind, rewind, changed)
            after, rest = changed[-1].place, rest - len(changed)
    changes = [one for one in found if one.action]
    left = [left_out(one, code) for one in found for code in one.left]
    for one in changes:
        count(counts, one.kind, one.action)
    vars(rewind).update(
        dict.fromkeys(("id", "created_at", "position")),
        state=RewindState.PREVIEW,
        done=len(changes),
        counts=counts,
        left_out=left[:SHOWN],
        left_out_total=len(left),
        changes=[_change_of(one) for one in changes[:SHOWN]],
        is_complete=rest > 0,
    )
    return rewind


def create(tenant_id: UUID | str, wanted: Mapping[str, Json], *, actor: Actor) -> Any:
    """Queue a rewind to the moment ``to``; ``kinds`` and ``only`` limit what goes back.

    Raises NotFound, TenantDeleting, RewindRunning, PreconditionFailed, and Invalid for a moment that
    is none or before the tenant existed, and for ids that no row of the kinds ever had.
    """
    values = _check(queries.lock_row(Tenant, tenant_id), wanted, actor)
    made = insert_row(Rewind, values, conflicts=CONFLICTS)
    record_creation("rewind.created", made, actor=actor)
    JOBS[REWIND_JOB].push(str(made.id))
    return shown(made)


def get_rewind(rewind_id: UUID | str) -> Any:
    return shown(queries.get_row(Rewind, rewind_id))


def list_rewinds(paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None) -> Page:
    """One page of the rewinds of a tenant, or of all."""
    return paginate(Rewind, paging, tenant_id=tenant_id, without=("left_out",))


def shown(row: Rewind) -> Any:
    """The rewind as it is answered."""
    return SimpleNamespace(**row._asdict(), changes=[], is_complete=True)


def count(counts: Counts, kind: str, action: str) -> None:
    """Add one to the number of rows of a kind and an action; nothing for no action."""
    if action:
        numbers = counts.setdefault(kind, {})
        numbers[action] = numbers.get(action, 0) + 1


def finish(running: Rewind, *, error: str = "") -> Rewind:
    """End a locked rewind: completed, or failed where there is an ``error``."""
    state = RewindState.FAILED if error else RewindState.COMPLETED
    ended = {"state": state.value, "error": error, "finished_at": utcnow()}
    finished, _ = queries.update_row(Rewind, running, ended)
    names = ("state", "done", "counts", "left_out_total", "error")
    change = Change({"state": running.state}, {name: getattr(finished, name) for name in names})
    actor = Actor(running.created_by_user_id)
    action = "rewind.failed" if error else "rewind.completed"
    record(action, finished, change, actor=actor)
    return finished


def _check(tenant: Tenant, wanted: Mapping[str, Json], actor: Actor) -> dict[str, Any]:
    """The columns of the rewind, if it is possible."""
    if tenant.deletes_at is not None:
        raise TenantDeleting
    to = ("body", "to")
    moment, ids = past.find(wanted["to"], to), wanted["only"]
    SET_MOMENT.execute(position=str(moment.position))
    if not past.HAS_TENANT.scalar(id=str(tenant.id)):
        raise Invalid(value_error(to, "the tenant did not exist then", wanted["to"]))
    kinds = [kind for kind in KINDS if kind in wanted["kinds"]]
    types = [KINDS[kind].target_type for kind in kinds]
    known = ids and FIND_KNOWN.scalars(tenant_id=tenant.id, target_types=types, ids=ids)
    unknown = [
        value_error(("body", "only", index), "no row of these kinds has this id", str(one))
        for index, one in enumerate(ids or ())
        if one not in known
    ]
    if unknown:
        raise Invalid(*unknown[:MAX_ENTRIES])
    return {
        "tenant_id": tenant.id,
        "created_by_user_id": actor.id,
        "to_position": moment.position,
        "to_time": moment.time,
        "kinds": kinds,
        "only": ids and [str(one) for one in ids],
    }


def _change_of(one: Difference) -> dict[str, object]:
    """A change as a preview has it; of a row that comes back all its fields."""
    fields = KINDS[one.kind].fields if one.now is None else one.values
    changes = {
        name: {"before": getattr(one.now, name, None), "after": getattr(one.past, name)}
        for name in fields
    }
    row = one.now or one.past
    name = next((getattr(row, name) for name in NAMES if hasattr(row, name)), None) or ""
    about = {"kind": one.kind, "id": one.changed.row_id, "name": name}
    return {**about, "action": one.action, "changes": changes}
