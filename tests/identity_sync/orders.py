"""Delivering histories in any order, and looking at what they leave."""

import json
import random
from typing import Any

from flask import Flask
from sqlalchemy import select

from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.identity_sync import sync
from app.inbox.providers import get_provider
from app.inbox.providers.payloads import Posted
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests.identity_sync.histories import Body, World

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
        name: sorted(tuple(row) for row in Statement(f"tests.{name}", statement).all())
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
                    (delivery,) = adapter.split(Posted(raw), None)
                    sync.apply(
                        list(adapter.adapt(raw)),  # type: ignore[arg-type]
                        source=provider,
                        event_id=delivery.external_id,
                        roles={},
                    )
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
