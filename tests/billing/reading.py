"""The reader, run against simulated providers."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from flask import Flask

from app import create_app
from app.billing import api
from app.billing.reader import run_reader
from app.extensions import db
from app.inbox.models import WebhookEvent
from tests.billing.simulated.base import Event, Simulated
from tests.inbox.sending import event_row
from tests.running.serving import wait_until


def settings_of(*accounts: Simulated) -> dict[str, str]:
    """What an operator configures for these accounts, with their API keys."""
    found: dict[str, str] = {}
    for account in accounts:
        name = account.name.upper()
        found |= {
            f"WEBHOOK_SECRETS_{name}": account.secret,
            f"{name}_API_KEY": account.api_key,
            f"{name}_API_URL": account.url,
        }
    return found


@contextmanager
def service(environment: Mapping[str, str], *accounts: Simulated) -> Iterator[Flask]:
    """The service with the API keys of these accounts; no provider has limited it yet."""
    api._paused.clear()
    app = create_app({**environment, **settings_of(*accounts)})
    yield app
    with app.app_context():
        db.engine.dispose()


@contextmanager
def reader_of(*apps: Flask) -> Iterator[None]:
    """Run a reader of each application."""
    stopped = threading.Event()
    threads = [
        threading.Thread(target=run_reader, args=(app,), kwargs={"stop": stopped.is_set})
        for app in apps
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def post(app: Flask, account: Simulated, event: Event) -> str:
    """Deliver an event of the provider; the id of its row."""
    headers = account.headers(event)
    path = f"/webhooks/billing/{account.name}"
    answer = app.test_client().post(path, data=event.body, headers=headers)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return str(answer.get_json()["event_id"])


def post_all(app: Flask, account: Simulated) -> list[str]:
    return [post(app, account, event) for event in account.take()]


def wait_for(event_id: str, *, seconds: float = 20, **values: Any) -> WebhookEvent:
    """The event, once its columns have these values, or once it is applied or ignored."""

    def has_come() -> bool:
        row = event_row(event_id)
        wanted = values or {"next_attempt_at": None}
        return all(getattr(row, name) == value for name, value in wanted.items())

    with suppress(AssertionError):
        wait_until(has_come, seconds=seconds)
    return event_row(event_id)
