"""Every action of the console leaves an audit row that names the person who acted."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
from flask import Flask

from app import create_app
from app.audit.service import record_creation
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.emails.models import Suppression
from app.events import positions
from app.extensions import db
from app.tenants.models import Tenant
from tests import database
from tests.console.conftest import Browser
from tests.console.world import RULE, address_of, create_world, know, pages_of
from tests.factories import PLATFORM_SUBJECT, create_member, create_preset, credits_flag, save
from tests.search import finding

SLUG = {"form_confirmation": "acme"}
# They change a session, and nothing that is stored about tenants. What is counted and held has no row.
WITHOUT_AUDIT_ROW = {"choose_tenant", "release_hold", "sign_out", "use_link"}


@dataclass(frozen=True)
class Action:
    """A form that is sent. ``after`` are the actions that make it possible."""

    values: Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]] = field(
        default_factory=dict
    )
    after: tuple[str, ...] = ()
    query: str = ""
    is_platforms: bool = False  # nobody of the tenant may do it
    with_ids: str = ""  # of the world, which the query selects
    prepare: Callable[[dict[str, Any]], None] = lambda world: None


def suppress(world: dict[str, Any]) -> None:
    values = {"cause": "bounced", "scope": "", "source": "resend", "suppressed_at": utcnow()}
    save(Suppression, address="ada@example.com", **values, is_active=True)


def fail_event(world: dict[str, Any]) -> None:
    database.execute("UPDATE webhook_events SET status = 'failed'")


def unused_plan(world: dict[str, Any]) -> None:
    world["plan_id"] = create_preset("unused").id


def named_key(world: dict[str, Any]) -> None:
    database.execute("UPDATE api_keys SET prefix = 'sk_0123456789'")


def paid_in_credits(world: dict[str, Any]) -> None:
    database.execute(
        "UPDATE plan_presets SET flags = (flags::jsonb || CAST(:flag AS jsonb))::json",
        flag=json.dumps(credits_flag("tokens", 0)),
    )
    world["key"] = "tokens"


def newcomer(world: dict[str, Any]) -> None:
    finding.create_user(database.row(Tenant), email="new@example.com")


def known_person(world: dict[str, Any]) -> None:
    know("ada@acme.example")
    database.execute("UPDATE domains SET name = 'acme.example'")


def unused_permission(world: dict[str, Any]) -> None:
    database.execute("UPDATE roles SET permissions = '{}' WHERE key = 'clerk'")


def known_tenant(world: dict[str, Any]) -> None:
    """Let the audit trail know the tenant."""
    with database.platform_transaction():
        record_creation("tenant.created", database.row(Tenant), actor=SYSTEM_CLI)
    database.execute("UPDATE event_feed SET last_position = (SELECT max(position) FROM events)")
    with world["app"].app_context():
        positions.sequence()


def order(world: dict[str, Any]) -> dict[str, Any]:
    return {"move": f"{world['field_id']} "}


FIELD = {"entity_type": "user", "field_key": "floor", "field_type": "text", "label": "Floor"}
LIMIT = {"flag_key": "calls2", "default_value": "5", "period": "day", "policy": "soft"}
LINE = b'{"type": "tenant", "idp_org_id": "org_new", "name": "New"}'
STREAM = {"url": "https://hooks.example.com/events", "types": "user.*", "format": "native"}
URL = "https://hooks.example.com/all"
CONNECTION = {
    "name": "Okta",
    "provider": "okta",
    "default_role": "viewer",
    "deactivate": "membership",
    "group_roles_group": ["Finance", ""],
    "group_roles_role": ["billing", "viewer"],
}

ACTIONS: dict[str, Action] = {
    "accept_join_request": Action(),
    "activate_member": Action(after=("end_member",)),
    "activate_tenant": Action(after=("suspend_tenant",), is_platforms=True),
    "activate_user": Action(after=("deactivate_user",)),
    "archive_field": Action(),
    "assign_plan": Action({"plan_name": "free", "reason": "Pilot"}, is_platforms=True),
    "assign_role": Action(lambda world: {"role": "viewer", "membership_id": str(world["user_id"])}),
    "cancel_subscription": Action({"at_period_end": "on", **SLUG}),
    "change_log_stream": Action(),
    "change_member_role": Action({"role": "billing"}),
    "change_member_roles": Action({"role": "billing"}, with_ids="membership_id"),
    "compare_billing": Action(is_platforms=True),
    "change_override": Action({"flag_value": "dark"}),
    "create_api_key": Action({"name": "sync", "permissions": ["users:read"]}),
    "create_billing_customer": Action(
        {"provider": "stripe", "customer_id": "cus_2", "tenant_id": "Acme"}, is_platforms=True
    ),
    "create_connection": Action(CONNECTION),
    "create_domain": Action({"name": "acme.example", **RULE}),
    "create_endpoint": Action({"url": URL, "types": "*"}),
    "create_field": Action(FIELD),
    "create_import": Action({"file": (BytesIO(LINE), "x.jsonl")}, is_platforms=True),
    "create_invitation": Action(
        {"email": "new@example.com", "role": "viewer", "expires_in_days": "7"}
    ),
    "create_log_stream": Action(STREAM),
    "create_member": Action({"user_id": "new@example.com", "role": "viewer"}, prepare=newcomer),
    "create_permission": Action({"key": "invoices:pay"}, is_platforms=True),
    "create_plan": Action({"name": "scale"}, is_platforms=True),
    "create_plan_flag": Action(LIMIT, query="?type=limit", is_platforms=True),
    "create_price": Action(
        {"provider": "stripe", "price_id": "price_2", "plan_name": "free"}, is_platforms=True
    ),
    "create_role": Action({"key": "auditor", "name": "Auditor", "assignable_by": "admin"}),
    "create_setup_link": Action({"scopes": ["scim"], "expires_in_hours": "72"}),
    "create_tenant": Action({"name": "Other", "idp_org_id": "org_other"}, is_platforms=True),
    "create_user": Action({"idp_user_id": "user_new", "email": "new@example.com"}),
    "deactivate_user": Action(),
    "decline_join_request": Action(),
    "delete_billing_customer": Action(is_platforms=True),
    "delete_connection": Action(SLUG),
    "delete_domain": Action(SLUG),
    "delete_endpoint": Action(SLUG),
    "delete_field": Action({"form_confirmation": "department"}, after=("archive_field",)),
    "delete_log_stream": Action(SLUG),
    "delete_permission": Action(
        {"form_confirmation": "theme"}, is_platforms=True, prepare=unused_permission
    ),
    "delete_price": Action(is_platforms=True),
    "delete_plan": Action({"form_confirmation": "unused"}, is_platforms=True, prepare=unused_plan),
    "delete_role": Action({"replace_with": "viewer"}),
    "delete_tenant": Action(SLUG, after=("suspend_tenant",), is_platforms=True),
    "edit_connection": Action({**CONNECTION, "status": "disabled"}),
    "edit_domain": Action({"join": "auto", "join_role": "member"}),
    "edit_endpoint": Action({"url": URL, "types": "user.*", "is_active": "on"}),
    "edit_field": Action({"label": "Renamed"}),
    "edit_permission": Action({"description": "Renamed."}, is_platforms=True),
    "edit_plan": Action({"name": "free", "display_name": "Renamed"}, is_platforms=True),
    "edit_plan_flag": Action({"default_value": "dark"}, is_platforms=True),
    "edit_price": Action({"plan_name": "free", "sort_order": "7"}, is_platforms=True),
    "edit_role": Action({"name": "Renamed", "assignable_by": "admin"}),
    "edit_tenant": Action({"name": "Renamed", "slug": "acme"}),
    "edit_tenant_notes": Action({"text": "Pays late."}, is_platforms=True),
    "edit_tenant_metadata": Action({"segment": "large"}),
    "edit_user": Action({"first_name": "Renamed", "email": "new@example.com"}),
    "edit_user_metadata": Action({"department": "Sales"}),
    "end_member": Action(),
    "end_override": Action(is_platforms=True),
    "erase_user": Action({"form_confirmation": "member@example.com"}),
    "export_user": Action(),
    "grant_credits": Action(
        {"amount": "5", "source": "purchase"}, is_platforms=True, prepare=paid_in_credits
    ),
    "list_roles": Action(lambda world: {f"shown_{world['role_id']}": "theme"}),
    "order_fields": Action(),
    "recover_endpoint": Action(),
    "remove_assignment": Action(),
    "remove_plan_flag": Action({"form_confirmation": "theme"}, is_platforms=True),
    "remove_suppression": Action(
        {"form_confirmation": "ada@example.com"},
        query="?address=ada@example.com",
        is_platforms=True,
        prepare=suppress,
    ),
    "replay_failed_webhooks": Action(is_platforms=True, prepare=fail_event),
    "replay_webhook": Action(is_platforms=True, prepare=fail_event),
    "resend_delivery": Action(),
    "resend_invitation": Action(),
    "restore_field": Action(after=("archive_field",)),
    "restore_tenant": Action(after=("suspend_tenant", "delete_tenant"), is_platforms=True),
    "revoke_api_key": Action(prepare=named_key, values={"form_confirmation": "sk_0123456789"}),
    "revoke_credits": Action({"reason": "Refunded"}, is_platforms=True, prepare=paid_in_credits),
    "revoke_invitation": Action(),
    "revoke_setup_link": Action(),
    "rewind_log_stream": Action({"from": "beginning"}),
    "rewind_tenant": Action(
        lambda _: {"to": utcnow().isoformat(), "kinds": ["users"], **SLUG},
        is_platforms=True,
        prepare=known_tenant,
    ),
    "rotate_connection": Action(),
    "rotate_endpoint": Action(),
    "send_test_event": Action({"type": "user.created"}),
    "suspend_tenants": Action({"reason": "Unpaid"}, is_platforms=True, with_ids="tenant_id"),
    "suspend_tenant": Action({"reason": "Unpaid", **SLUG}, is_platforms=True),
    "sweep_domain": Action(prepare=known_person),
    "verify_domain": Action(),
    "withdraw_plan": Action(SLUG, after=("assign_plan",), is_platforms=True),
}


@pytest.fixture(scope="module")
def with_key(environment: dict[str, str]) -> Iterator[Flask]:
    """An application with the API key of a billing provider, so that it can be compared."""
    made = create_app({**environment, "STRIPE_API_KEY": "rk_test_key"})
    yield made
    with made.app_context():
        db.engine.dispose()


@pytest.fixture
def world(app):
    """The world, whose user and membership are those of a member and not of the owner."""
    tenant = finding.create_tenant(name="Acme", slug="acme")
    world = create_world(tenant)
    user, membership, _ = create_member(tenant, "member", email="member@example.com")
    return world | {"app": app, "user_id": user.id, "membership_id": membership.id}


class TestEveryAction:
    def test_has_its_case_here(self, app):
        posted = {rule.endpoint.partition(".")[2] for rule in pages_of(app, "POST")}

        assert posted == ACTIONS.keys() | WITHOUT_AUDIT_ROW

    @pytest.mark.parametrize("name", ACTIONS)
    def test_leaves_a_row_that_names_the_person(self, with_key, signed_in, world, name):
        action = ACTIONS[name]
        session = signed_in(None if action.is_platforms else world["user"]).secret
        browser = Browser(with_key, session)
        person = f"platform:{PLATFORM_SUBJECT}" if action.is_platforms else str(world["user"].id)
        for earlier in action.after:
            assert send(with_key, browser, world, earlier) < 400
        action.prepare(world)
        known = {row.id for row in database.query("SELECT id FROM audit_events")}

        status = send(with_key, browser, world, name)

        assert status < 400
        rows = database.query("SELECT id, actor, action FROM audit_events")
        new = [row for row in rows if row.id not in known]
        assert new != []
        assert {row.actor for row in new} == {person}


def send(app: Any, browser: Any, world: dict[str, Any], name: str) -> int:
    """Send the form of an action; the status of the answer."""
    action = ACTIONS[name]
    path = max((address_of(rule, world) for rule in pages_of(app, "POST", name)), key=len)
    query = f"?id={world[action.with_ids]}" if action.with_ids else action.query
    address = f"{path}{query}"
    if name == "order_fields":
        return browser.post(address, data=order(world)).status_code
    values = action.values(world) if callable(action.values) else action.values
    return browser.send(address, **values).status_code
