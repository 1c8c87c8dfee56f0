"""The application: ``uvicorn benchmarks.peer.main:app``."""

from __future__ import annotations

from fastapi import FastAPI

from benchmarks.peer import billing, people, webhooks

app = FastAPI()
app.include_router(people.router)
app.include_router(billing.router)
app.include_router(webhooks.router)
