"""The history of one row: its audit rows, with the names of those who made the changes."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ColumnExpressionArgument,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from app.audit.models import AuditEvent
from app.auth.models import ApiKey
from app.connections.models import ScimConnection
from app.core.db.list_conditions import Condition
from app.core.db.pages import Page, Paging, paginate
from app.core.db.queries import parse_id
from app.core.db.tenancy import narrow
from app.users.models import User


def _as_id(text: ColumnExpressionArgument[str]) -> ColumnElement[UUID]:
    """The text column as a UUID; NULL for a text that is not a UUID."""
    return case((func.pg_input_is_valid(text, "uuid"), cast(text, Uuid)))


_full_name = func.trim(func.concat_ws(" ", User.first_name, User.last_name))
_user_name = select(func.coalesce(func.nullif(_full_name, ""), User.email)).where(
    User.tenant_id == AuditEvent.tenant_id, User.id == _as_id(AuditEvent.actor)
)


def _id_after(prefix: str) -> ColumnElement[UUID]:
    """The UUID after ``prefix`` in the actor's id; NULL for an actor without it."""
    rest = func.substr(AuditEvent.actor, len(prefix) + 1, type_=Text)
    return case((AuditEvent.actor.startswith(prefix), _as_id(rest)))


# The table of API keys has no row-level security, so hide the names of platform keys from tenants.
_is_platform = func.current_setting("app.platform", True) == "on"
_key_name = select(ApiKey.name).where(
    ApiKey.id == _id_after("key:"), or_(ApiKey.tenant_id == AuditEvent.tenant_id, _is_platform)
)
_connection_name = select(ScimConnection.name).where(
    ScimConnection.tenant_id == AuditEvent.tenant_id, ScimConnection.id == _id_after("scim:")
)
ACTOR_NAME = func.coalesce(
    *(names.scalar_subquery() for names in (_user_name, _key_name, _connection_name)),
    literal("", Text),
).label("actor_name")


OF_ROW = AuditEvent.target_id == bindparam("row_id")


def list_history(target_type: str, row_id: str, paging: Paging) -> Page:
    """One page of the audit rows of one row, each with ``actor_name``; empty for an unknown id.

    Raises NotFound for an id that is not a UUID.
    """
    equal: dict[str, object] = {"target_type": target_type}
    if (own := narrow(None)) is not None:
        equal["tenant_id"] = own
    of_row = Condition(OF_ROW, {"row_id": str(parse_id(row_id, target_type))}, finds_ids=True)
    return paginate(AuditEvent, paging, of_row, equal=equal, further=(ACTOR_NAME,))
