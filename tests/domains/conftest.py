"""Domains of a tenant, their records, and people of the identity provider."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from flask import Flask

from app.core.db import retries, tenancy
from app.domains import jobs
from app.domains.models import Domain
from app.identity_sync import sync
from app.identity_sync.events import Change, IdentityEvent, UserEvent
from app.tenants.models import Tenant
from tests.domains.dns_server import Answers, dns_server, records
from tests.factories import create_domain

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.fixture
def server(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """The DNS server that the service asks."""
    with dns_server() as answers:
        config = replace(app.extensions["config"], dns_resolvers=(answers.address,))
        monkeypatch.setitem(app.extensions, "config", config)
        yield answers


@pytest.fixture
def set_record(server: Answers) -> Callable[[Any], None]:
    """Set the record of a domain, given as a row or as an answer."""

    def set_(domain: Any) -> None:
        values = domain if isinstance(domain, dict) else domain._asdict()
        server.set(values["record_name"], records(f'TXT "{values["record_value"]}"'))

    return set_


@pytest.fixture
def check(app: Flask) -> Callable[[], None]:
    """Run the job."""

    def run() -> None:
        with app.app_context():
            jobs.check_domains()

    return run


@pytest.fixture
def verified(tenant: Tenant) -> Callable[..., Domain]:
    """A verified domain of the tenant, or of another one."""

    def create(name: str = "example.com", *, of: Tenant = tenant, **values: Any) -> Domain:
        return create_domain(of, name=name, state="verified", **values)

    return create


@pytest.fixture
def tell(app: Flask) -> Callable[..., None]:
    """Apply the identity provider's event of a person, or other events."""

    def apply(
        user_id: str = "ada", *events: IdentityEvent, change: Change = Change.CREATED, **values: Any
    ) -> None:
        told = {"email": f"{user_id}@example.com", "email_verified": True, **values}
        own = UserEvent(object_id=user_id, change=change, **{"occurred_at": AT, **told})

        def work() -> None:
            tenancy.enter(tenancy.PLATFORM)
            sync.apply(events or [own], source="workos", event_id=user_id, roles={})

        with app.app_context():
            retries.run(partial(work))

    return apply
