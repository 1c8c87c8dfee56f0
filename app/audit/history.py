"""The history of one row: its audit rows, with the names of those who made the changes."""

from __future__ import annotations

from sqlalchemy import bindparam

from app.audit.known_names import ACTOR_NAME
from app.audit.models import AuditEvent
from app.core.db.list_conditions import Condition
from app.core.db.pages import Page, Paging, paginate
from app.core.db.queries import parse_id
from app.core.db.tenancy import current_scope

OF_ROW = AuditEvent.target_id == bindparam("row_id")


def list_history(target_type: str, row_id: str, paging: Paging) -> Page:
    """One page of the audit rows of one row, each with ``actor_name``; empty for an unknown id.

    Raises NotFound for an id that is not a UUID.
    """
    equal: dict[str, object] = {"target_type": target_type}
    if (own := current_scope().tenant_id) is not None:
        equal["tenant_id"] = own
    of_row = Condition(OF_ROW, {"row_id": str(parse_id(row_id, target_type))}, finds_ids=True)
    return paginate(AuditEvent, paging, of_row, equal=equal, further=(ACTOR_NAME,))
