"""Files of JSON Lines, and importing them as a worker does."""

import json
from typing import Any
from uuid import UUID

from flask import Flask

from app.flags.models import FeatureOverride
from app.imports import service
from app.imports.models import Import, ImportFault
from app.imports.work import work
from app.memberships.models import Membership
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User
from tests.database import platform_transaction, rows
from tests.factories import platform_token

MEDIA_TYPE = "application/x-ndjson"


def tenant_line(org_id: str = "org", **values: Any) -> dict[str, Any]:
    return {"type": "tenant", "idp_org_id": org_id, "name": f"Name of {org_id}", **values}


def user_line(name: str, org_id: str = "org", **values: Any) -> dict[str, Any]:
    email = f"{name}@example.com"
    return {"type": "user", "idp_org_id": org_id, "idp_user_id": name, "email": email, **values}


def member_line(
    name: str, role: str = "member", org_id: str = "org", **values: Any
) -> dict[str, Any]:
    line = {"type": "membership", "idp_org_id": org_id, "idp_user_id": name, "role": role}
    return {**line, **values}


def subscription_line(name: str = "sub", org_id: str = "org", **values: Any) -> dict[str, Any]:
    return {
        "type": "subscription",
        "idp_org_id": org_id,
        "bp_subscription_id": name,
        "bp_customer_id": "cus",
        "bp_plan_id": "price",
        "bp_status": "active",
        "plan_name": "growth",
        "start_date": "2026-01-01T00:00:00Z",
        "billing_cycle": "monthly",
        "per_cycle_billing_amount": 4900,
        **values,
    }


def override_line(flag_key: str, flag_value: Any, **values: Any) -> dict[str, Any]:
    line = {"type": "override", "idp_org_id": "org", "flag_key": flag_key, "flag_value": flag_value}
    return {**line, **values}


def as_file(*lines: Any) -> bytes:
    """Objects as JSON; bytes as they are."""
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return b"".join(text + b"\n" for text in texts)


def post(api: Any, content: bytes, *, path: str = "/v1/imports", **options: Any) -> Any:
    headers = {"Content-Type": MEDIA_TYPE, **options.pop("headers", {})}
    options = {"token": platform_token(), **options}
    return api.post(path, data=content, headers=headers, **options)


def finish(app: Flask, import_id: str) -> Import:
    """Apply an import to its end; its row."""
    with app.app_context():
        *_, last = work(UUID(import_id))
    return last


def bring_in(app: Flask, api: Any, *lines: Any) -> tuple[dict[str, Any], list[ImportFault]]:
    """Import these lines; the counts, and the faults."""
    answer = post(api, as_file(*lines))
    assert answer.status_code == 202, answer.get_data(as_text=True)
    import_id = answer.get_json()["data"]["id"]
    last = finish(app, import_id)
    assert (last.state, last.lines_done) == ("completed", last.lines_total)
    return last.counts, rows(ImportFault, import_id=UUID(import_id))


def resume(import_id: UUID) -> None:
    with platform_transaction():
        service.resume(import_id)


def company(*subscriptions: Any, **values: Any) -> list[Any]:
    """A tenant with a subscription, an owner, an inactive member and an override."""
    return [
        tenant_line(slug="acme", **values),
        *(subscriptions or (subscription_line(),)),
        user_line("ada", first_name="Ada", meta_data={"desk": {"floor": 2}, "none": None}),
        user_line("bob", is_active=False),
        member_line("ada", "owner", idp_membership_id="om_1"),
        member_line("bob", is_active=False),
        override_line("seats", 7),
    ]


def snapshot() -> list[list[Any]]:
    return [rows(model) for model in (Tenant, User, Membership, Subscription, FeatureOverride)]
