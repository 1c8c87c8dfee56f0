"""The session of a request, who asks, and the audit row of a change."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID, uuid4

import jwt
import orjson
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from benchmarks.peer.models import AuditEvent, TenantRow, utcnow

REMEMBERED = 60.0  # seconds, as in the service
PUBLIC_KEY = load_pem_public_key(os.environ["JWT_PUBLIC_KEY"].encode())
READ = {"users:read", "flags:read"}
EVERYTHING = READ | {"users:write", "memberships:write", "billing:write"}
PERMISSIONS = {
    "owner": EVERYTHING,
    "admin": EVERYTHING,
    "billing": READ | {"billing:write"},
    "member": READ,
    "viewer": {"users:read"},
}

engine = create_async_engine(
    os.environ["DATABASE_URL"].replace("psycopg2", "asyncpg"),
    pool_size=8,
    max_overflow=0,
    json_serializer=lambda value: orjson.dumps(value).decode(),
    json_deserializer=orjson.loads,
    connect_args={"server_settings": {"timezone": "UTC"}},
)
make_session = async_sessionmaker(engine, expire_on_commit=False)
claims_seen: dict[str, tuple[float, dict[str, Any]]] = {}


async def open_session() -> AsyncIterator[AsyncSession]:
    async with make_session() as session:
        yield session


Session = Annotated[AsyncSession, Depends(open_session)]
Credentials = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]


@dataclass
class Caller:
    """Who asks: the user, the tenant and the role."""

    user_id: UUID
    tenant_id: UUID
    role: str
    request_id: str


def caller_with(permission: str) -> Callable[..., Any]:
    """A dependency: the caller, if their role has the permission."""

    async def authenticate(request: Request, session: Session, credentials: Credentials) -> Caller:
        claims = verified(credentials.credentials)
        found = (
            await session.execute(
                text("SELECT * FROM authenticate_user(:subject, :org_id)"),
                {"subject": claims["sub"], "org_id": claims["org_id"]},
            )
        ).one()
        if found.user_id is None:
            raise HTTPException(403, "No active membership in this organization.")
        if not found.tenant_is_active:
            raise HTTPException(403, "This tenant is suspended.")
        if permission not in PERMISSIONS[found.role]:
            raise HTTPException(403, f"This needs the permission {permission}.")
        request_id = request.headers.get("x-request-id") or str(uuid4())
        return Caller(found.user_id, found.tenant_id, found.role, request_id)

    return authenticate


def verified(token: str) -> dict[str, Any]:
    known = claims_seen.get(token)
    if known and known[0] > time.time():
        return known[1]
    try:
        claims = jwt.decode(
            token,
            PUBLIC_KEY,
            algorithms=["EdDSA"],
            issuer=os.environ["JWT_ISSUER"],
            audience=os.environ["JWT_AUDIENCE"],
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError:
        raise HTTPException(401, "Not authenticated") from None
    claims_seen[token] = (time.time() + REMEMBERED, claims)
    return claims


async def find(
    session: AsyncSession, model: Any, caller: Caller, row_id: UUID, *, lock: bool = False
) -> Any:
    statement = select(model).where(model.tenant_id == caller.tenant_id, model.id == row_id)
    row = await session.scalar(statement.with_for_update() if lock else statement)
    if row is None:
        raise HTTPException(404, "Not Found")
    return row


def record(
    session: AsyncSession,
    action: str,
    row: TenantRow,
    before: dict[str, Any],
    after: dict[str, Any],
    caller: Caller,
) -> None:
    """Change the row's fields to ``after`` and leave an audit row about it."""
    for name, value in after.items():
        setattr(row, name, value)
    row.updated_at = utcnow()
    if hasattr(row, "updated_by_user_id"):
        row.updated_by_user_id = str(caller.user_id)
    row.version += 1
    session.add(
        AuditEvent(
            tenant_id=caller.tenant_id,
            actor=str(caller.user_id),
            action=action,
            target_type=action.partition(".")[0],
            target_id=str(row.id),
            before=before,
            after=after,
            request_id=caller.request_id,
        )
    )
