"""What is measured: the requests of each item, no two of which are alike."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from app.inbox.signatures.sending import sign
from benchmarks import tokens
from benchmarks.dataset import (
    DEPARTMENTS,
    MEMBERSHIP,
    ROLES,
    SUBSCRIPTION,
    USER,
    org_id,
    row_id,
    subject,
)
from benchmarks.load import request
from benchmarks.stage import Stage

CREDENTIALS = 1_000  # owners that requests come from, of as many tenants
STRIDE = 7919  # a prime: requests after one another are of different tenants


@dataclass
class Population:
    """The rows that requests are about; the requesting owners lie evenly among all tenants."""

    stage: Stage
    run: str = field(default_factory=lambda: secrets.token_hex(4))  # makes a run's ids its own
    _headers: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def credentials(self) -> int:
        return min(CREDENTIALS, self.stage.tenants)

    @property
    def users(self) -> int:
        """The number of users that requests are about."""
        return self.credentials * self.stage.users_per_tenant

    def at(self, serial: int) -> tuple[int, int]:
        """A user who is no owner, and their tenant, for the request with this number."""
        place, user = divmod(serial * STRIDE % self.users, self.stage.users_per_tenant)
        tenant = place * (self.stage.tenants // self.credentials)
        return tenant * self.stage.users_per_tenant + max(user, 1), tenant

    def owner(self, tenant: int) -> dict[str, str]:
        """The credential of a tenant's owner."""
        if tenant not in self._headers:
            self._headers[tenant] = tokens.bearer(
                self.stage.environment,
                subject=subject(tenant * self.stage.users_per_tenant),
                org_id=org_id(tenant),
            )
        return self._headers[tenant]


def get_user(population: Population, serial: int) -> bytes:
    user, tenant = population.at(serial)
    return request("GET", f"/v1/users/{row_id(USER, user)}", population.owner(tenant))


def list_users(population: Population, serial: int) -> bytes:
    _, tenant = population.at(serial)
    return request("GET", "/v1/users?limit=50", population.owner(tenant))


def search_users(population: Population, serial: int) -> bytes:
    _, tenant = population.at(serial)
    department = DEPARTMENTS[serial % len(DEPARTMENTS)]
    path = f"/v1/users?meta_data.department={department}&limit=50"
    return request("GET", path, population.owner(tenant))


def patch_meta_data(population: Population, serial: int) -> bytes:
    user, tenant = population.at(serial)
    patches = {"seats": serial, "address": {"city": f"City {population.run}"}, "reviewed": True}
    return request(
        "PATCH",
        f"/v1/users/{row_id(USER, user)}/meta_data",
        population.owner(tenant),
        json.dumps({"patches": patches}).encode(),
    )


def patch_role(population: Population, serial: int) -> bytes:
    """Each time that all users have had their turn, everybody gets the next role."""
    user, tenant = population.at(serial)
    role = ROLES[serial // population.users % len(ROLES)]
    path = f"/v1/memberships/tenant/{row_id(MEMBERSHIP, user)}/role?role={role}"
    return request("PATCH", path, population.owner(tenant))


def patch_subscription(population: Population, serial: int) -> bytes:
    _, tenant = population.at(serial)
    fields = {
        "billing_email": f"billing+{serial}@tenant-{tenant}.example",
        "billing_phone": f"+44 20 {serial:08}",
        "billing_contact_name": f"Contact {population.run}-{serial}",
    }
    return request(
        "PATCH",
        f"/v1/billing/subscriptions/{row_id(SUBSCRIPTION, tenant)}",
        population.owner(tenant),
        json.dumps(fields).encode(),
    )


def evaluate_flags(population: Population, serial: int) -> bytes:
    _, tenant = population.at(serial)
    return request("POST", "/ofrep/v1/evaluate/flags", population.owner(tenant), b'{"context": {}}')


def post_webhook(population: Population, serial: int) -> bytes:
    """A user's change, in the service's own generic form, never sent before."""
    user, tenant = population.at(serial)
    body = {
        "type": "user.updated",
        "timestamp": "2026-06-01T12:00:00Z",
        "data": {
            "id": subject(user),
            "email": f"user{user}@tenant-{tenant}.example",
            "first_name": f"First{user}",
            "last_name": f"Last{serial}",
            "updated_at": "2026-06-01T12:00:00Z",
        },
    }
    secrets_of_provider = population.stage.environment["IDP_WEBHOOK_SECRETS"]
    preset, _, secret = secrets_of_provider.split()[0].partition(":")
    message_id = f"msg_{population.run}_{serial}"
    signed = sign(preset, secret, json.dumps(body).encode(), time.time(), message_id=message_id)
    return request("POST", "/webhooks/idp", signed.headers, signed.body)


@dataclass
class Item:
    """One kind of request; ``sent`` counts those that were used, of all servers together."""

    name: str
    title: str
    make: Callable[[Population, int], bytes]
    adds_row_to: str | None = None  # the table that gets a row with each request
    sent: int = 0

    def requests(self, population: Population, count: int) -> list[bytes]:
        """The next ``count`` requests; add to ``sent`` how many of them were used."""
        return [self.make(population, self.sent + number) for number in range(count)]


ITEMS = [
    Item("subscription", "PATCH subscription", patch_subscription, "audit_events"),
    Item("meta-data", "PATCH meta_data", patch_meta_data, "audit_events"),
    Item("user", "GET one user", get_user),
    Item("users", "GET 50 users", list_users),
    Item("role", "PATCH role", patch_role, "audit_events"),
    Item("webhook", "POST /webhooks/idp", post_webhook, "webhook_events"),
    Item("search", "search by a custom field", search_users),
    Item("flags", "OFREP, 20 flags", evaluate_flags),
]
