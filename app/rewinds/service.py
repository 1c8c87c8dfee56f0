"""Rewinds: preview, create, find, end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, value_error
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.history import past
from app.history.past import Moment
from app.rewinds.comparing import FIND_KNOWN, SET_MOMENT, Difference, Period, compare, find_changed
from app.rewinds.kinds import KINDS, LEFT
from app.rewinds.models import Rewind, RewindState
from app.tenants.models import Tenant
from app.tenants.service import TenantDeleting

REWIND_JOB = "app.rewinds.jobs.rewind"
STALLED = timedelta(seconds=30)
TO, ONLY = ("body", "to"), ("body", "only")
FIRST = UUID(int=0)
NOW = 2**62  # after all positions
SHOWN = 100  # changes of a preview
MAX_COMPARED, COMPARED = 10_000, 500  # rows of a preview, and of one statement

HAD_TENANT = Statement(
    "rewinds.had_tenant", "SELECT EXISTS (SELECT FROM past.tenants WHERE id = :tenant_id)"
)
TAKE_STALLED = take_stalled(Rewind, "updated_at", STALLED, Rewind.__table__.c.finished_at.is_(None))


class RewindRunning(Conflict):
    code = "rewind_running"
    detail = "A rewind of this tenant is running; wait until it has ended."


CONFLICTS = {"uq_rewinds_unfinished": RewindRunning}


def preview(tenant_id: UUID | str, wanted: Mapping[str, Json]) -> Any:
    """What a rewind would do now, in the form of a :class:`Rewind`; nothing is written.

    Raises what :func:`create` does, but for RewindRunning.
    """
    tenant, moment = _check(tenant_id, wanted)
    only = wanted["only"] and [str(one) for one in wanted["only"]]
    period, left = Period(tenant.id, moment.position, NOW, only), MAX_COMPARED
    found = list[Difference]()
    for kind in wanted["kinds"]:
        after = FIRST
        while left > 0 and (changed := find_changed(kind, period, after, min(COMPARED, left))):
            found += compare(kind, period, changed)
            after, left = changed[-1].row_id, left - len(changed)
    counts: dict[str, dict[str, int]] = {}
    for (kind, action), number in Counter((one.kind, one.action) for one in found).items():
        if action:
            counts.setdefault(kind, {})[action] = number
    left_out = [entry for one in found for entry in entries(one)]
    changes = [_shown(one) for one in found if one.action]
    return SimpleNamespace(
        id=None,
        tenant_id=tenant.id,
        created_at=None,
        created_by_user_id="",
        state=RewindState.PREVIEW,
        to_position=str(moment.position),
        position=None,
        kinds=wanted["kinds"],
        only=only,
        done=len(changes),
        counts=counts,
        left_out=left_out[:SHOWN],
        left_out_total=len(left_out),
        changes=changes[:SHOWN],
        is_complete=left > 0,
        error="",
        finished_at=None,
    )


def create(tenant_id: UUID | str, wanted: Mapping[str, Json], *, actor: Actor) -> Any:
    """Queue a rewind to the moment ``to``; ``kinds`` and ``only`` limit what goes back.

    Raises NotFound, TenantDeleting, RewindRunning, PreconditionFailed, and Invalid for a moment that
    is none or before the tenant existed, and for ids that no row of the kinds ever had.
    """
    tenant, moment = _check(tenant_id, wanted)
    values = {
        "tenant_id": tenant.id,
        "created_by_user_id": actor.id,
        "to_position": moment.position,
        "to_time": moment.time,
        "kinds": wanted["kinds"],
        "only": wanted["only"] and [str(one) for one in wanted["only"]],
    }
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


def finish(running: Rewind, values: Mapping[str, object], *, error: str = "") -> Rewind:
    """End a locked rewind: completed, or failed where there is an ``error``."""
    state = RewindState.FAILED if error else RewindState.COMPLETED
    ended = {**values, "state": state.value, "error": error, "finished_at": utcnow()}
    finished, _ = queries.update_row(Rewind, running, ended)
    names = ("state", "done", "counts", "left_out_total", "error")
    change = Change({"state": running.state}, {name: getattr(finished, name) for name in names})
    action = "rewind.failed" if error else "rewind.completed"
    record(action, finished, change, actor=Actor(running.created_by_user_id))
    return finished


def queue_stalled() -> None:
    """Queue the unfinished rewinds that no worker has worked on for a while."""
    for row in TAKE_STALLED.all():
        JOBS[REWIND_JOB].push(str(row.id))


def entries(one: Difference) -> Sequence[dict[str, object]]:
    """What of a row stays as it is, as it is shown."""
    place = {"kind": one.kind, "id": str(one.row_id)}
    return [{**place, "code": code, "detail": LEFT[code]} for code in one.left]


def _check(tenant_id: UUID | str, wanted: Mapping[str, Json]) -> tuple[Tenant, Moment]:
    tenant = queries.lock_row(Tenant, tenant_id)
    if tenant.deletes_at is not None:
        raise TenantDeleting
    moment = past.find(wanted["to"], TO)
    SET_MOMENT.execute(position=str(moment.position))
    if not HAD_TENANT.scalar(tenant_id=tenant.id):
        raise Invalid(value_error(TO, "the tenant did not exist then", wanted["to"]))
    if wanted["only"]:
        types = [KINDS[kind].target_type for kind in wanted["kinds"]]
        place = {"tenant_id": tenant.id, "target_types": types}
        known = {*FIND_KNOWN.scalars(**place, ids=wanted["only"])}
        unknown = [
            value_error((*ONLY, index), "no row of these kinds has this id", str(one))
            for index, one in enumerate(wanted["only"])
            if one not in known
        ]
        if unknown:
            raise Invalid(*unknown)
    return tenant, moment


def _shown(one: Difference) -> dict[str, object]:
    fields = KINDS[one.kind].fields
    changes = {
        name: {"before": getattr(one.now, name, None), "after": value}
        for name, value in one.values.items()
        if name in fields or one.now is None
    }
    return {"kind": one.kind, "id": one.row_id, "action": one.action, "changes": changes}
