"""Answers of /v1/operations."""

from __future__ import annotations

from app.core.health import Level
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, ListOf, Nested, Str
from app.core.validation.schemas import AnswerSchema


class QueueSchema(AnswerSchema):
    """A queue of jobs."""

    examples = {
        "name": "webhooks",
        "workers": 2,
        "waiting": 3,
        "waiting_seconds": 1,
        "delayed": 0,
        "running": 1,
        "failed": 0,
    }

    name = Str(description="The name of the queue.")
    workers = Int(description="The workers that serve it.")
    waiting = Int(description="Jobs that wait for a worker.")
    waiting_seconds = Int(description="Seconds that the first of them has waited.")
    delayed = Int(description="Jobs that are to run later.")
    running = Int(description="Jobs that a worker runs.")
    failed = Int(description="Jobs that failed in the last day.")


class WorkerSchema(AnswerSchema):
    """A worker. One that was killed is shown for up to 45 seconds."""

    examples = {"name": "8f14e45fceea4d1b", "queues": ["webhooks"], "state": "idle", "job": None}

    name = Str(description="The name of the worker.")
    queues = ListOf(Str(), description="The queues that it serves, in this order.")
    state = Str(description="Such as `idle` or `busy`.")
    job = Str(nullable=True, description="What it works on.")
    started_at = AwareDateTime(nullable=True, description="When it started (UTC).")
    last_seen_at = AwareDateTime(nullable=True, description="When it last was alive (UTC).")


class QueuesSchema(AnswerSchema):
    """The queues, in the order in which a worker serves them, and the workers."""

    queues = ListOf(Nested(QueueSchema), description="All queues.")
    workers = ListOf(Nested(WorkerSchema), description="The workers that are alive.")


class WorkSchema(AnswerSchema):
    """How much of one kind wants attention: at most 1,000 are counted."""

    examples = {
        "name": "trials_ending",
        "count": 3,
        "is_more": False,
        "list": "/v1/tenants?plan_ends_before=2026-02-07T12:00:00Z&include=assigned_until",
    }
    has_pages = False

    name = Str(description="What is counted.")
    count = Int(nullable=True, description="Null if it took over half a second.")
    is_more = Bool(description="Whether there are more than `count`.")
    list = Str(description="Path and query of the list of them.")


class FindingSchema(AnswerSchema):
    """What one check of the installation has found."""

    examples = {
        "check": "migrations",
        "ok": False,
        "level": "fault",
        "found": "at 0023",
        "fix": "Run flask db upgrade.",
    }

    check = Str(description="What was checked.")
    ok = Bool(description="False: this is a fault.")
    level = Choice(
        Level,
        description="`ok`: all is well; `hint`: no fault, but something to look at;"
        " `fault`: the service does not work as it should.",
    )
    found = Str(description="What was found.")
    fix = Str(description="How to correct a fault, or a hint; empty where all is well.")
