"""Find a tenant by any of its three names: id, idp_org_id or slug."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Uuid, bindparam, or_, select

from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.tenants.models import Tenant

_has_id = Tenant.id == bindparam("id", type_=Uuid)
_has_idp_org_id = Tenant.idp_org_id == bindparam("name")
FIND = Statement(
    "tenants.find_by_name",
    select(Tenant)
    .where(or_(_has_id, _has_idp_org_id, Tenant.slug == bindparam("name")))
    .order_by(_has_id.desc(), _has_idp_org_id.desc()),
)


def find_tenants(name: str) -> Sequence[Tenant]:
    """The tenants with this id, this ``idp_org_id`` or this slug, in this order; at most three.

    A slug is last because a tenant's admins choose it: theirs never hides another tenant's ids.
    """
    return FIND.all(id=id_or_none(name), name=name)
