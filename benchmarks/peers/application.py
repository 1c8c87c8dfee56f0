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

from fastapi import Depends, FastAPI, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from benchmarks.peers import work
from benchmarks.peers.work import Refused

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


JSON = "application/json"


def create_app(name: str, database: Database) -> FastAPI:
    """The application; its worker process opens ``database`` when it starts."""
    redis = Redis.from_url(os.environ["REDIS_URL"], socket_timeout=work.REDIS_TIMEOUT)
    notifier = work.Notifier(name)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await database.open()
        work.tune_garbage_collection()
        yield
        await database.close()
        await redis.aclose()

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.exception_handler(Refused)
    async def refuse(_: Request, refused: Refused) -> Response:
        return Response(work.dumps({"detail": refused.detail}), refused.status, media_type=JSON)

    async def count(claims: work.Claims) -> dict[str, str]:
        """Count the request in Redis, by one round trip; the headers that say so."""
        now = time.time()
        key = f"{name}:rate:{claims.rate_key}:{int(now // work.MINUTE)}"
        pipeline = redis.pipeline(transaction=False)
        counted, _ = await pipeline.incr(key).expire(key, work.MINUTE).execute()
        return dict(work.rate_headers(counted, now))

    def asking(permission: str) -> Any:
        """The one dependency: rate limit, transaction, authentication, permission."""

        async def authenticate(request: Request) -> AsyncIterator[Asked]:
            claims = work.verified(request.headers.get("authorization", ""))
            headers = await count(claims)
            async with database.transaction() as transaction:
                values = {"subject": claims.subject, "org_id": claims.org_id}
                who = await transaction.one("authenticate", values)
                work.authorize(who, permission)
                yield Asked(transaction, who, headers, request)

        return Depends(authenticate, scope="function")  # commit before the answer is sent

    @app.get("/v1/users/{user_id}", response_model=None)
    async def get_user(user_id: UUID, asked: Asked = asking("users:read")) -> Response:
        values = {"tenant_id": asked.who["tenant_id"], "id": user_id}
        return asked.resource(found(await asked.transaction.one("get_user", values)))

    @app.get("/v1/users", response_model=None)
    async def list_users(
        asked: Asked = asking("users:read"),
        limit: Annotated[int, Query(ge=1, le=100)] = 50,
    ) -> Response:
        values = {"tenant_id": asked.who["tenant_id"], "count": limit + 1}
        statement = "list_users"
        for key, value in asked.request.query_params.items():
            if key.startswith("meta_data."):
                field = found(
                    await asked.transaction.one(
                        "find_field", {"tenant_id": values["tenant_id"], "key": key[10:]}
                    )
                )
                if field["state"] != "ready":
                    raise Refused(409, "The search index is not ready.")
                statement, values = (
                    "search_users",
                    {**values, "field_id": field["id"], "value": value},
                )
        rows = await asked.transaction.all(statement, values)
        return Response(work.page(rows, limit), headers=asked.headers, media_type=JSON)

    @app.patch("/v1/users/{user_id}/meta_data", response_model=None)
    async def patch_meta_data(
        user_id: UUID, body: UserMetaDataPatch, asked: Asked = asking("users:write")
    ) -> Response:
        row = await asked.locked("lock_user", user_id)
        after = {"meta_data": work.patched(row, body.patches)}
        return await asked.change("users", row, {"meta_data": row["meta_data"]}, after)

    @app.patch("/v1/memberships/tenant/{membership_id}/role", response_model=None)
    async def patch_role(
        membership_id: UUID, role: Role, asked: Asked = asking("memberships:write")
    ) -> Response:
        row = await asked.locked("lock_membership", membership_id)
        work.check_role(role, row["role"], asked.who["role"])
        return await asked.change("memberships", row, {"role": row["role"]}, {"role": role})

    @app.patch("/v1/billing/subscriptions/{subscription_id}", response_model=None)
    async def patch_subscription(
        subscription_id: UUID,
        body: SubscriptionUpdate,
        asked: Asked = asking("billing:write"),
    ) -> Response:
        row = await asked.locked("lock_subscription", subscription_id)
        sent = body.model_dump(exclude_unset=True)
        after = {name: value for name, value in sent.items() if row[name] != value}
        if not after:
            return asked.resource(row)
        before = {name: row[name] for name in after}
        return await asked.change("subscriptions", row, before, after)

    @app.post("/ofrep/v1/evaluate/flags", response_model=None)
    async def evaluate_flags(body: Evaluation, asked: Asked = asking("flags:read")) -> Response:
        row = await asked.transaction.one("flags", {"tenant_id": asked.who["tenant_id"]})
        answer = work.evaluated(found(row))
        headers = {**asked.headers, "etag": work.etag_of(answer)}
        return Response(answer, headers=headers, media_type=JSON)

    @app.post("/webhooks/idp", response_model=None)
    async def receive(request: Request) -> Response:
        row = work.inbox_row(name, request.headers, await request.body())
        async with database.transaction() as transaction:
            stored = await transaction.one("store_event", row)
        if stored and notifier.is_due():
            await asyncio.to_thread(notifier.notify)
        return Response(work.receipt(row["id"], duplicate=not stored), media_type=JSON)

    return app


def found(row: Any) -> Any:
    """The row; raises Refused 404 where there is none."""
    if row is None:
        raise Refused(404, "Not Found")
    return row
