"""The FastAPI application of both FastAPI peers; ``database`` is what they differ in."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol
from uuid import UUID

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from benchmarks.peers import work
from benchmarks.peers.work import Refused

JSON = "application/json"
router = APIRouter()

Role = Literal["owner", "admin", "billing", "member", "viewer"]
Text = Annotated[str, Field(max_length=255)]


class Transaction(Protocol):
    """An open transaction; statements are named as in :mod:`benchmarks.peers.sql`."""

    async def one(self, name: str, values: dict[str, Any]) -> Any:
        """The only row, a mapping, or None."""

    async def all(self, name: str, values: dict[str, Any]) -> list[Any]:
        """The rows."""

    async def update(self, table: str, values: dict[str, Any], after: dict[str, Any]) -> Any:
        """Store ``after`` in one version of a row, add its audit row; the row that is now."""


class Database(Protocol):
    """A pool of connections of the running event loop."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def transaction(self) -> AbstractAsyncContextManager[Transaction]: ...


@dataclass(slots=True)
class Asked:
    """An authenticated request: its transaction, who asks, and the headers to be sent."""

    transaction: Transaction
    who: Any
    headers: dict[str, str]
    request: Request

    async def locked(self, name: str, row_id: UUID) -> Any:
        """The locked row, which is of the version that If-Match names; else 404 or 412."""
        values = {"tenant_id": self.who["tenant_id"], "id": row_id}
        row = found(await self.transaction.one(name, values))
        work.check_version(self.request.headers.get("if-match"), row["version"])
        return row

    async def change(self, table: str, row: Any, before: Any, after: Any) -> Response:
        """Store ``after`` and its audit row; the answer."""
        request_id = self.request.headers.get("x-request-id")
        values = work.change(row, self.who, request_id, before, after)
        return self.resource(found(await self.transaction.update(table, values, after)))

    def resource(self, row: Any) -> Response:
        """One row with its ETag."""
        etag, body = work.resource(row)
        return Response(body, headers={**self.headers, "etag": etag}, media_type=JSON)


class UserMetaDataPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    patches: dict[str, Any]


class SubscriptionUpdate(BaseModel):
    """What a tenant's own credential may change."""

    model_config = ConfigDict(extra="forbid")

    auto_renew: bool = True
    billing_address_line_1: Text = ""
    billing_city: Text = ""
    billing_state: Text = ""
    billing_zip: Text = ""
    billing_country: Text = ""
    billing_email: Annotated[str, AfterValidator(work.check_email)] = ""
    billing_phone: Text = ""
    billing_contact_name: Text = ""
    send_invoice_days_before_due: Annotated[int, Field(ge=0, le=365)] = 0
    send_email_receipts: bool = True
    send_paper_receipts: bool = False


class Evaluation(BaseModel):
    context: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Peer:
    """What the process of one peer uses."""

    name: str
    database: Database
    redis: Redis
    notifier: work.Notifier

    async def count(self, claims: work.Claims) -> dict[str, str]:
        """Count the request in Redis, by one round trip; the headers that say so."""
        now = time.time()
        key = f"{self.name}:rate:{claims.rate_key}:{int(now // work.MINUTE)}"
        pipeline = self.redis.pipeline(transaction=False)
        counted, _ = await pipeline.incr(key).expire(key, work.MINUTE).execute()
        return dict(work.rate_headers(counted, now))


@dataclass(frozen=True, slots=True)
class Credential:
    """A verified and counted credential, and the headers that tell the count."""

    request: Request
    claims: work.Claims
    headers: dict[str, str]

    @asynccontextmanager
    async def holding(self, permission: str) -> AsyncIterator[Asked]:
        """The request's transaction, authenticated and in its tenant; raises Refused 403."""
        async with self.request.app.state.peer.database.transaction() as transaction:
            values = {"subject": self.claims.subject, "org_id": self.claims.org_id}
            who = await transaction.one("authenticate", values)
            work.authorize(who, permission)
            yield Asked(transaction, who, self.headers, self.request)


async def verify(request: Request) -> Credential:
    """The one dependency. With ``yield`` for the transaction it costs 40 µs more."""
    claims = work.verified(request.headers.get("authorization", ""))
    return Credential(request, claims, await request.app.state.peer.count(claims))


Verified = Annotated[Credential, Depends(verify)]


@router.get("/v1/users/{user_id}", response_model=None)
async def get_user(user_id: UUID, credential: Verified) -> Response:
    async with credential.holding("users:read") as asked:
        values = {"tenant_id": asked.who["tenant_id"], "id": user_id}
        return asked.resource(found(await asked.transaction.one("get_user", values)))


@router.get("/v1/users", response_model=None)
async def list_users(
    credential: Verified, limit: Annotated[int, Query(ge=1, le=100)] = 50
) -> Response:
    async with credential.holding("users:read") as asked:
        values = {"tenant_id": asked.who["tenant_id"], "count": limit + 1}
        statement = "list_users"
        for name, value in asked.request.query_params.items():
            if name.startswith("meta_data."):
                named = {"tenant_id": values["tenant_id"], "key": name[10:]}
                field = found(await asked.transaction.one("find_field", named))
                if field["state"] != "ready":
                    raise Refused(409, "The search index is not ready.")
                statement = "search_users"
                values = {**values, "field_id": field["id"], "value": value}
        rows = await asked.transaction.all(statement, values)
        return Response(work.page(rows, limit), headers=asked.headers, media_type=JSON)


@router.patch("/v1/users/{user_id}/meta_data", response_model=None)
async def patch_meta_data(user_id: UUID, body: UserMetaDataPatch, credential: Verified) -> Response:
    async with credential.holding("users:write") as asked:
        row = await asked.locked("lock_user", user_id)
        after = {"meta_data": work.patched(row, body.patches)}
        return await asked.change("users", row, {"meta_data": row["meta_data"]}, after)


@router.patch("/v1/memberships/tenant/{membership_id}/role", response_model=None)
async def patch_role(membership_id: UUID, role: Role, credential: Verified) -> Response:
    async with credential.holding("memberships:write") as asked:
        row = await asked.locked("lock_membership", membership_id)
        work.check_role(role, row["role"], asked.who["role"])
        return await asked.change("memberships", row, {"role": row["role"]}, {"role": role})


@router.patch("/v1/billing/subscriptions/{subscription_id}", response_model=None)
async def patch_subscription(
    subscription_id: UUID, body: SubscriptionUpdate, credential: Verified
) -> Response:
    async with credential.holding("billing:write") as asked:
        row = await asked.locked("lock_subscription", subscription_id)
        sent = body.model_dump(exclude_unset=True)
        after = {name: value for name, value in sent.items() if row[name] != value}
        if not after:
            return asked.resource(row)
        before = {name: row[name] for name in after}
        return await asked.change("subscriptions", row, before, after)


@router.post("/ofrep/v1/evaluate/flags", response_model=None)
async def evaluate_flags(body: Evaluation, credential: Verified) -> Response:
    async with credential.holding("flags:read") as asked:
        row = await asked.transaction.one("flags", {"tenant_id": asked.who["tenant_id"]})
        answer = work.evaluated(found(row))
        headers = {**asked.headers, "etag": work.etag_of(answer)}
        return Response(answer, headers=headers, media_type=JSON)


@router.post("/webhooks/idp", response_model=None)
async def receive(request: Request) -> Response:
    peer: Peer = request.app.state.peer
    row = work.inbox_row(peer.name, request.headers, await request.body())
    async with peer.database.transaction() as transaction:
        stored = await transaction.one("store_event", row)
    if stored and peer.notifier.is_due():
        await asyncio.to_thread(peer.notifier.notify)
    return Response(work.receipt(row["id"], duplicate=not stored), media_type=JSON)


def create_app(name: str, database: Database) -> FastAPI:
    """The application; each of its processes opens ``database`` when it starts."""
    redis = Redis.from_url(os.environ["REDIS_URL"], socket_timeout=work.REDIS_TIMEOUT)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await database.open()
        work.tune_garbage_collection()
        yield
        await database.close()
        await redis.aclose()

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    app.state.peer = Peer(name, database, redis, work.Notifier(name))
    app.include_router(router)
    app.add_exception_handler(Refused, refuse)
    return app


async def refuse(_: Request, refused: Any) -> Response:
    """The answer to a request that raised Refused."""
    return Response(work.dumps({"detail": refused.detail}), refused.status, media_type=JSON)


def found(row: Any) -> Any:
    """The row; raises Refused 404 where there is none."""
    if row is None:
        raise Refused(404, "Not Found")
    return row
