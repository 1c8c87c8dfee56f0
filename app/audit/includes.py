"""The key that the audit trail can include."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ARRAY, any_, bindparam, select

from app.audit import schemas
from app.audit.history import ACTOR_NAME
from app.audit.models import AuditEvent
from app.core.db.statements import Statement
from app.core.http.includes import Include, by_key
from app.core.validation.fields import Str

FIND_ACTOR_NAMES = Statement(
    "audit_events.find_actor_names",
    select(AuditEvent.id, ACTOR_NAME).where(
        AuditEvent.id == any_(bindparam("keys", type_=ARRAY(sa.Uuid)))
    ),
)


def _names(rows: Sequence[Any]) -> list[str]:
    found = by_key(FIND_ACTOR_NAMES, [row.id for row in rows])
    return [found[row.id].actor_name for row in rows]


ACTORS_NAME = Include("actor_name", Str(metadata=schemas.ACTOR_NAME), _names)
