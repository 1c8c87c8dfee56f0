"""Whatever order a history is delivered in, and however often, the rows are the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from app.core import tenancy
from app.core.transactions import transaction
from app.extensions import db
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from app.webhooks import lifecycle
from app.webhooks.providers import get_provider
from tests.webhooks.histories import SIMULATED, Body, World, history
from tests.webhooks.sending import Sender

NAMES = sorted(SIMULATED)
Snapshot = dict[str, list[tuple[Any, ...]]]


class RolledBack(Exception):
    """Ends a delivery without a trace."""


def snapshot() -> Snapshot:
    """All that the rows say, but for their ids, times and versions."""
    tenants = select(Tenant.idp_org_id, Tenant.name, Tenant.slug, Tenant.is_active)
    users = select(
        User.idp_org_id,
        User.idp_user_id,
        User.email,
        User.first_name,
        User.last_name,
        User.is_active,
    )
    memberships = select(
        Membership.idp_org_id,
        User.idp_user_id,
        Membership.role,
        Membership.is_active,
        Membership.idp_membership_id,
    ).join(User, (User.tenant_id == Membership.tenant_id) & (User.id == Membership.user_id))
    return {
        name: sorted(tuple(row) for row in db.session.execute(statement))
        for name, statement in (
            ("tenants", tenants),
            ("users", users),
            ("memberships", memberships),
        )
    }


def deliver(app: Flask, provider: str, events: list[Body]) -> Snapshot:
    """Apply the events in this order, on an empty database that stays empty."""
    adapter = get_provider(provider)
    found: Snapshot = {}
    with app.app_context():
        try:
            with transaction():
                tenancy.enter(tenancy.PLATFORM)
                for body in events:
                    raw = json.dumps(body).encode()
                    (delivery,) = adapter.split(raw, None)
                    lifecycle.apply(
                        list(adapter.adapt(raw)),  # type: ignore[arg-type]
                        source=provider,
                        event_id=delivery.external_id,
                        roles={},
                    )
                    db.session.flush()
                found = snapshot()
                raise RolledBack
        except RolledBack:
            pass
    return found


def shuffled(events: list[Body], seed: int) -> list[Body]:
    """The events in a random order, a quarter of them twice."""
    chance = random.Random(seed)
    order = events + chance.sample(events, len(events) // 4)
    chance.shuffle(order)
    return order


def check_truth(world: World, found: Snapshot) -> None:
    """The rows show what the provider holds in the end."""
    truth = world.truth()
    tenants = {org: (name, is_active) for org, name, _, is_active in found["tenants"]}
    assert tenants == truth["tenants"]
    assert {
        (org, user): role for org, user, role, is_active, _ in found["memberships"] if is_active
    } == truth["active"]


class TestEveryProvider:
    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("provider", NAMES)
    def test_in_order_shows_what_the_provider_holds(self, app, provider, seed):
        world = history(provider, seed=seed)

        found = deliver(app, provider, world.events)

        assert len(world.events) >= 30
        check_truth(world, found)

    @pytest.mark.parametrize("provider", NAMES)
    def test_in_any_order_shows_the_same(self, app, provider):
        world = history(provider, seed=1)
        expected = deliver(app, provider, world.events)

        for seed in range(5):
            assert deliver(app, provider, shuffled(world.events, seed)) == expected, seed

    @pytest.mark.parametrize("provider", NAMES)
    def test_backwards_shows_the_same(self, app, provider):
        for seed in range(10, 12):
            world = history(provider, seed=seed)

            assert deliver(app, provider, world.events[::-1]) == deliver(
                app, provider, world.events
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("provider", NAMES)
    def test_in_two_hundred_orders_shows_the_same(self, app, provider):
        world = history(provider, seed=2)
        expected = deliver(app, provider, world.events)

        for seed in range(200):
            assert deliver(app, provider, shuffled(world.events, seed)) == expected, seed

    @pytest.mark.parametrize("provider", NAMES)
    def test_through_the_receiver_shows_the_same(self, app, sender: Sender, provider):
        world = history(provider, seed=3)
        expected = deliver(app, provider, world.events)
        for body in shuffled(world.events, 3):
            number = world.events.index(body)

            sender.deliver(SIMULATED[provider].preset, body, message_id=f"msg_{number}")

        with app.app_context(), transaction():
            tenancy.enter(tenancy.PLATFORM)
            assert snapshot() == expected
