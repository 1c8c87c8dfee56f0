"""Users and memberships."""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from sqlalchemy import select

from benchmarks.peer.access import Caller, Session, caller_with, find, record
from benchmarks.peer.models import CustomField, FieldIndex, IndexRow, Membership, User
from benchmarks.peer.schemas import Answer, MembershipRead, Page, Role, UserMetaDataPatch, UserRead

router = APIRouter()
RANKS = {"owner": 4, "admin": 3, "billing": 2, "member": 1, "viewer": 0}

UserReader = Annotated[Caller, Depends(caller_with("users:read"))]
UserWriter = Annotated[Caller, Depends(caller_with("users:write"))]
MembershipWriter = Annotated[Caller, Depends(caller_with("memberships:write"))]


@router.get("/v1/users/{user_id}")
async def get_user(
    user_id: UUID, session: Session, caller: UserReader, response: Response
) -> Answer[UserRead]:
    user = await find(session, User, caller, user_id)
    response.headers["ETag"] = f'"{user.version}"'
    return Answer(data=UserRead.model_validate(user))


@router.get("/v1/users")
async def list_users(
    request: Request,
    session: Session,
    caller: UserReader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Page[UserRead]:
    statement = select(User).where(User.tenant_id == caller.tenant_id)
    for name, value in request.query_params.items():
        if name.startswith("meta_data."):
            field_id = await _searchable(session, caller, name[10:])
            statement = statement.where(
                User.id.in_(
                    select(IndexRow.entity_id).where(
                        IndexRow.tenant_id == caller.tenant_id,
                        IndexRow.field_id == field_id,
                        IndexRow.text_key == value,
                    )
                )
            )
    statement = statement.order_by(User.created_at, User.id).limit(limit + 1)
    users = (await session.scalars(statement)).all()
    last = users[limit] if len(users) > limit else None
    return Page(
        data=[UserRead.model_validate(user) for user in users[:limit]],
        next_cursor=f"{last.created_at}/{last.id}" if last else None,
    )


@router.patch("/v1/users/{user_id}/meta_data")
async def patch_meta_data(
    user_id: UUID, body: UserMetaDataPatch, session: Session, caller: UserWriter, response: Response
) -> Answer[UserRead]:
    user = await find(session, User, caller, user_id, lock=True)
    await _check(session, caller, body.patches)
    after = _merged(user.meta_data, body.patches)
    if len(json.dumps(after)) > 32_768:
        raise HTTPException(422, "meta_data is too large")
    before = {"meta_data": user.meta_data}
    record(session, "user.meta_data_patched", user, before, {"meta_data": after}, caller)
    await session.commit()
    response.headers["ETag"] = f'"{user.version}"'
    return Answer(data=UserRead.model_validate(user))


@router.patch("/v1/memberships/tenant/{membership_id}/role")
async def patch_role(
    membership_id: UUID, role: Role, session: Session, caller: MembershipWriter, response: Response
) -> Answer[MembershipRead]:
    membership = await find(session, Membership, caller, membership_id, lock=True)
    if max(RANKS[role], RANKS[membership.role]) > RANKS[caller.role]:
        raise HTTPException(403, "Nobody grants a role above their own.")
    before = {"role": membership.role}
    record(session, "membership.role_changed", membership, before, {"role": role}, caller)
    await session.commit()
    response.headers["ETag"] = f'"{membership.version}"'
    return Answer(data=MembershipRead.model_validate(membership))


async def _searchable(session: Session, caller: Caller, key: str) -> UUID:
    field_id, state = (
        await session.execute(
            select(CustomField.id, FieldIndex.state)
            .join(
                FieldIndex,
                (FieldIndex.tenant_id == CustomField.tenant_id)
                & (FieldIndex.field_id == CustomField.id),
            )
            .where(
                CustomField.tenant_id == caller.tenant_id,
                CustomField.entity_type == "user",
                CustomField.field_key == key,
                CustomField.is_searchable,
                CustomField.is_active,
            )
        )
    ).one()
    if state != "ready":
        raise HTTPException(409, "The search index is not ready.")
    return field_id


async def _check(session: Session, caller: Caller, patches: dict[str, Any]) -> None:
    """The rules of the field types that the data has."""
    fields = await session.scalars(
        select(CustomField).where(
            CustomField.tenant_id == caller.tenant_id,
            CustomField.entity_type == "user",
            CustomField.is_active,
        )
    )
    for field in fields:
        value = patches.get(field.field_key)
        match field.field_type:
            case "integer":
                good = type(value) is int
            case "select":
                good = value in (field.options or ())
            case _:
                good = False
        if value is not None and not good:
            raise HTTPException(422, f"{field.field_key} is not of its type")


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merged(target.get(name), value)
    return target
