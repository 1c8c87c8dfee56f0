"""What is measured: the requests of each item, every one of them with its own effect.

Requests are made anew for each run and change something each time, so that no run repeats what
an earlier one has already brought about.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from app.webhooks.signatures.sending import sign
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

ASKING = 1_000  # tenants that requests come from, however many there are
STRIDE = 7919  # a prime: neighbours in time are far apart in the table


@dataclass
class Population:
    """The rows that requests are about, and how many requests were made so far.

    They come from the owners of ``asking`` tenants, which lie evenly among all.
    """

    environment: dict[str, str]
    tenants: int
    users_per_tenant: int
    asking: int
    made: int = 0
    run: str = field(
        default_factory=lambda: secrets.token_hex(4)
    )  # parts one run's ids from another's
    _headers: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def users(self) -> int:
        """How many are asked about."""
        return self.asking * self.users_per_tenant

    def next(self) -> tuple[int, int, int]:
        """A serial number, a user that is no owner, and their tenant."""
        self.made += 1
        place, user = divmod(self.made * STRIDE % self.users, self.users_per_tenant)
        tenant = place * (self.tenants // self.asking)
        return self.made, tenant * self.users_per_tenant + max(user, 1), tenant

    def owner(self, tenant: int) -> dict[str, str]:
        """The credential of a tenant's owner."""
        if tenant not in self._headers:
            self._headers[tenant] = tokens.bearer(
                self.environment,
                subject=subject(tenant * self.users_per_tenant),
                org_id=org_id(tenant),
            )
        return self._headers[tenant]


@dataclass(frozen=True)
class Item:
    """One kind of request."""

    name: str
    title: str
    make: Callable[[Population], bytes]
    is_list: bool = False

    def requests(self, population: Population, count: int) -> Iterator[bytes]:
        return (self.make(population) for _ in range(count))


def get_user(population: Population) -> bytes:
    _, user, tenant = population.next()
    return request("GET", f"/v1/users/{row_id(USER, user)}", population.owner(tenant))


def list_users(population: Population) -> bytes:
    _, _, tenant = population.next()
    return request("GET", "/v1/users?limit=50", population.owner(tenant))


def search_users(population: Population) -> bytes:
    serial, _, tenant = population.next()
    department = DEPARTMENTS[serial % len(DEPARTMENTS)]
    path = f"/v1/users?meta_data.department={department}&limit=50"
    return request("GET", path, population.owner(tenant))


def patch_meta_data(population: Population) -> bytes:
    serial, user, tenant = population.next()
    patches = {"seats": serial, "address": {"city": f"City {population.run}"}, "reviewed": True}
    return request(
        "PATCH",
        f"/v1/users/{row_id(USER, user)}/meta_data",
        population.owner(tenant),
        json.dumps({"patches": patches}).encode(),
    )


def patch_role(population: Population) -> bytes:
    serial, user, tenant = population.next()
    role = ROLES[serial // population.users % len(ROLES)]
    path = f"/v1/memberships/tenant/{row_id(MEMBERSHIP, user)}/role?role={role}"
    return request("PATCH", path, population.owner(tenant))


def patch_subscription(population: Population) -> bytes:
    serial, _, tenant = population.next()
    fields = {
        "billing_email": f"billing+{serial}@tenant-{tenant}.example",
        "billing_phone": f"+44 20 {serial:08}",
        "billing_contact_name": f"Contact {population.run}",
    }
    return request(
        "PATCH",
        f"/v1/billing/subscriptions/{row_id(SUBSCRIPTION, tenant)}",
        population.owner(tenant),
        json.dumps(fields).encode(),
    )


def evaluate_flags(population: Population) -> bytes:
    _, _, tenant = population.next()
    return request("POST", "/ofrep/v1/evaluate/flags", population.owner(tenant), b'{"context": {}}')


def post_webhook(population: Population) -> bytes:
    """A user's change, in the service's own generic form, never sent before."""
    serial, user, tenant = population.next()
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
    preset, _, secret = population.environment["IDP_WEBHOOK_SECRETS"].split()[0].partition(":")
    message_id = f"msg_{population.run}_{serial}"
    signed = sign(preset, secret, json.dumps(body).encode(), time.time(), message_id=message_id)
    return request("POST", "/webhooks/idp", signed.headers, signed.body)


ITEMS = [
    Item("subscription", "PATCH subscription", patch_subscription),
    Item("meta-data", "PATCH meta_data", patch_meta_data),
    Item("user", "GET one user", get_user),
    Item("users", "GET 50 users", list_users, is_list=True),
    Item("role", "PATCH role", patch_role),
    Item("webhook", "POST /webhooks/idp", post_webhook),
    Item("search", "search by a custom field", search_users, is_list=True),
    Item("flags", "OFREP, 20 flags", evaluate_flags, is_list=True),
]
