"""The statements that read the rows of a set of lines."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY, Text, and_, any_, bindparam, func, select

from app.core.db.bulk import rows_from_arrays
from app.core.db.statements import Statement
from app.memberships.models import Membership
from app.memberships.owners import locked_owners
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User

FIND_TENANTS = Statement(
    "imports.find_tenants",
    select(Tenant).where(Tenant.idp_org_id == any_(bindparam("idp_org_ids", type_=ARRAY(Text)))),
)
LOCK_OWNERS = Statement(
    "imports.lock_owners", select(func.unnest(locked_owners(bindparam("tenant_id"))))
)


def _find(model: Any, key: str) -> Statement:
    """The rows of tenants by a key; the two parameters are arrays of the same length."""
    names = ("tenant_id", key)
    wanted = rows_from_arrays(model.__table__, names).subquery("wanted")
    columns = model.__table__.c
    same = and_(*(columns[name] == wanted.c[name] for name in names))
    return Statement(
        f"imports.find_{model.__tablename__}_by_{key}", select(model).join(wanted, same)
    )


FIND_USERS = _find(User, "idp_user_id")
FIND_USERS_BY_ID = _find(User, "id")
FIND_MEMBERSHIPS_OF_USERS = _find(Membership, "user_id")
FIND_MEMBERSHIPS = _find(Membership, "idp_membership_id")
FIND_SUBSCRIPTIONS = _find(Subscription, "bp_subscription_id")
