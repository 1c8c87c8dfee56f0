"""A person whose every trace carries a canary, left by requests and by webhooks."""

from typing import Any

from app.audit.service import record_creation
from app.auth import sessions
from app.core.actors import SYSTEM_CLI, Actor
from app.core.clock import utcnow
from app.events.models import Event
from app.imports.models import Import, ImportPiece
from app.inbox.providers import EMAIL
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.endpoints.models import WebhookEndpoint
from tests.database import platform_transaction, rows
from tests.factories import (
    create_api_key,
    create_domain,
    create_join_request,
    create_member,
    create_preset,
    create_subscription,
    create_tenant,
    create_user,
    platform_token,
    save,
)
from tests.history.writing import add_bases
from tests.imports.files import as_file, finish, post
from tests.inbox.sending import Sender
from tests.scim.directory import Directory, create_connection, replace

CANARY = "canarybird"
AT = "2026-01-05T09:45:05.123Z"


def word(name: str) -> str:
    """A text that occurs nowhere else and says where it was put."""
    return f"{CANARY}-{name}"


def mail(name: str) -> str:
    return f"{CANARY}.{name}@Example.com"


SUBJECT = word("subject")


def live(app: Any, api: Any, sender: Sender) -> str:
    """Leave the traces; the person's id in the first of their two tenants."""
    first, second = create_tenant(slug="first"), create_tenant(slug="second")
    for tenant in (first, second):
        _record_creation("tenant.created", tenant)
        create_member(tenant, role="owner")
    platform = platform_token()
    _by_invitation(api, first)
    _by_roles(api, first)
    user_id = _by_requests(api, platform, first)
    _by_their_own_hand(api, first)
    _as_contact(api, platform, first)
    _by_identity_events(sender, first, second)
    _by_mail(api, sender, platform)
    _by_imports(app, api, first)
    _in_the_console(first)
    api.sequence()
    add_bases(app)
    _by_deliveries(first, user_id)
    _by_later_changes(api, platform, user_id)
    _by_directory(app, first)
    _by_domain(first)
    return user_id


def _by_invitation(api: Any, tenant: Any) -> None:
    """As a superadmin they have invited their own address, and made a setup link for it."""
    token = platform_token(subject=SUBJECT, tenant=tenant)
    body = {"email": mail("new"), "role": "member", "meta_data": {"note": word("invited")}}
    answer = api.post("/v1/invitations", token=token, json=body)
    assert answer.status_code == 201
    link = {"scopes": ["scim"], "contact": mail("new")}
    answer = api.post("/v1/setup-links", token=token, json=link)
    assert answer.status_code == 201


def _by_roles(api: Any, tenant: Any) -> None:
    """As a superadmin they have made a permission, a role, a resource and an assignment."""
    token, query = platform_token(subject=SUBJECT, tenant=tenant), {"tenant_id": str(tenant.id)}
    members = api.get("/v1/memberships/tenant", token=token, query_string=query).get_json()["data"]
    to = {"membership_id": members[0]["id"], "role": "clerk"}
    for method, path, body in (
        ("PUT", "/v1/permissions/notes:read", {}),
        ("POST", "/v1/roles", {"key": "clerk", "name": "Clerk", "permissions": ["notes:read"]}),
        ("PUT", "/v1/resources/folder/1", {}),
        ("POST", "/v1/role-assignments", {**to, "resource": {"type": "folder", "id": "1"}}),
    ):
        about = {} if "permissions" in path else query
        answer = api.request(method, path, token=token, json=body, query_string=about)
        assert answer.status_code < 300, answer.text


def _in_the_console(tenant: Any) -> None:
    with platform_transaction():
        sessions.start(SUBJECT, tenant.idp_org_id, mail("new"))
        sessions.create_ticket("link", subject=SUBJECT, org_id=tenant.idp_org_id)


def _by_requests(api: Any, platform: str, tenant: Any) -> str:
    of_tenant = {"tenant_id": str(tenant.id)}

    def sent(method: str, path: str, body: Any, key: str) -> Any:
        answer = api.request(
            method, path, token=platform, json=body,
            query_string=of_tenant if method == "POST" else {},
            headers={"Idempotency-Key": f"{key} {mail('new')}", "X-Request-Id": mail("new")},
        )  # fmt: skip
        assert answer.status_code < 300, answer.get_data(as_text=True)
        return answer.get_json()["data"]

    field = {"entity_type": "user", "field_key": "badge", "label": "Badge", "field_type": "text"}
    sent("POST", "/v1/custom-fields", {**field, "is_searchable": True}, "a")
    user = {
        "idp_user_id": word("old-subject"), "email": mail("old"), "first_name": word("first"),
        "last_name": word("last"), "meta_data": {"badge": word("badge"), word("key"): [word("in")]},
    }  # fmt: skip
    user_id = sent("POST", "/v1/users", user, "b")["id"]
    sent("PATCH", f"/v1/users/{user_id}", {"idp_user_id": SUBJECT, "email": mail("new")}, "c")
    patches = {
        "badge": word("badge2") + " long" * 60 + word("badge3"),
        word("key"): None,
        "free": {"deep": word("deep")},
    }
    sent("PATCH", f"/v1/users/{user_id}/meta_data", {"patches": patches}, "d")
    member = {"user_id": user_id, "role": "admin", "idp_membership_id": word("membership")}
    sent("POST", "/v1/memberships/tenant", member, "e")
    return user_id


def _by_deliveries(tenant: Any, user_id: str) -> None:
    """The endpoint has answered with what it was sent."""
    (endpoint,) = rows(WebhookEndpoint, tenant_id=tenant.id)
    event = next(row for row in rows(Event, type="user.updated") if row.data["id"] == user_id)
    save(
        WebhookDelivery,
        tenant_id=tenant.id,
        endpoint_id=endpoint.id,
        event_id=event.id,
        type=event.type,
        response_body=word("answered"),
    )


def _by_later_changes(api: Any, platform: str, user_id: str) -> None:
    """Changes whose events have no position yet."""
    token = platform_token(subject=SUBJECT)
    for credential, name in ((platform, "later"), (token, "latest")):
        answer = api.patch(
            f"/v1/users/{user_id}",
            token=credential,
            json={"last_name": word(name)},
            headers={"X-Request-Id": mail("new")},
        )
        assert answer.status_code == 200


def _by_their_own_hand(api: Any, tenant: Any) -> None:
    """As a superadmin they have made rows, which say so."""
    token = platform_token(subject=SUBJECT, tenant=tenant)
    body = {"idp_user_id": "made_by_canary", "email": "bystander@example.com"}
    made = api.post("/v1/users", token=token, json=body)
    assert made.status_code == 201
    member = {"user_id": made.get_json()["data"]["id"], "role": "member"}
    assert api.post("/v1/memberships/tenant", token=token, json=member).status_code == 201
    ended = create_tenant(slug="ended", is_active=False)
    body = {"slug": ended.slug}
    assert api.delete(f"/v1/tenants/{ended.id}", token=token, json=body).status_code == 202
    assert api.delete(f"/v1/users/{create_user(ended).id}", token=token).status_code == 202
    create_preset("pilot")
    plan = {"plan_name": "pilot", "until": None, "reason": "Pilot"}
    assert api.put(f"/v1/tenants/{tenant.id}/plan", token=token, json=plan).status_code == 200
    key = {"name": "made", "permissions": ["users:read"]}
    assert api.post("/v1/api-keys", token=token, json=key).status_code == 201
    stream = {"kind": "https", "config": {"url": "https://logs.example.com/"}, "types": ["user.*"]}
    assert api.post("/v1/log-streams", token=token, json=stream).status_code == 201
    endpoint = {"url": "https://hooks.example.com/", "types": ["user.*"]}
    assert api.post("/v1/webhook-endpoints", token=token, json=endpoint).status_code == 201


def _as_contact(api: Any, platform: str, tenant: Any) -> None:
    contact = {
        "primary_contact_email": mail("new"), "primary_contact_name": word("contact"),
        "primary_contact_phone": word("phone"),
    }  # fmt: skip
    path = f"/v1/tenants/{tenant.id}"
    assert api.patch(path, token=platform, json=contact).status_code == 200
    create_preset("free")
    subscription = create_subscription(tenant)
    _record_creation("subscription.created", subscription)
    billing = {
        "billing_email": mail("new"), "billing_contact_name": word("payer"),
        "billing_phone": word("payer-phone"),
    }  # fmt: skip
    path = f"/v1/billing/subscriptions/{subscription.id}"
    token = create_api_key(permissions=["billing:write"])
    assert api.patch(path, token=token, json=billing).status_code == 200


def _by_identity_events(sender: Sender, first: Any, second: Any) -> None:
    user = {
        "id": SUBJECT, "email": mail("provider"), "first_name": word("given"),
        "last_name": word("family"), "note": word("note"),
    }  # fmt: skip
    link = {"organization_id": second.idp_org_id, "user_id": SUBJECT, "role": "member"}
    _post(sender, "user.created", user)
    _post(sender, "membership.created", {"id": word("link"), **link})
    for place in (first.idp_org_id, "org_unknown"):
        invitation = {"organization_id": place, "email": mail("new")}
        _post(sender, "invitation.created", {"id": word(f"invitation-{place}"), **invitation})
    sender.deliver("standard_webhooks", {"type": mail("new")}, message_id=mail("new"))
    sender.post("standard_webhooks", f"not json {mail('new')}".encode(), message_id="unreadable")


def _by_mail(api: Any, sender: Sender, platform: str) -> None:
    for kind in ("delivered", "bounced", "complained", "clicked"):
        data = {
            "recipient": f"Somebody <{mail('new')}>", "message_id": word(f"message-{kind}"),
            "bounce_type": "hard", "reason": word("reason"), "response": word("response"),
            "url": f"https://example.com/?who={word('url')}", "tags": [word("tag")],
            "metadata": {"who": word("meta")},
        }  # fmt: skip
        _post(sender, f"email.{kind}", data, receiver=EMAIL)
    path = f"/v1/app-communications/suppressions/{mail('new')}"
    assert api.delete(path, token=platform).status_code == 204


def _by_imports(app: Any, api: Any, tenant: Any) -> None:
    """As a superadmin they have imported lines about themselves; one import has failed."""
    token = platform_token(subject=SUBJECT)
    user = {"type": "user", "idp_org_id": "unknown", "idp_user_id": SUBJECT, "email": word("no")}
    answer = post(api, as_file(user, {"to": mail("new")}), token=token)
    finish(app, answer.get_json()["data"]["id"])
    failed = save(Import, created_by_user_id="cli:root", state="failed", finished_at=utcnow())
    body = as_file({**user, "idp_org_id": tenant.idp_org_id, "email": mail("new")})
    save(ImportPiece, import_id=failed.id, number=0, body=body)


def _by_directory(app: Any, tenant: Any) -> None:
    """A superadmin's connection, and a directory that provisions the person."""
    made_by = f"platform:{SUBJECT}"
    actors = {"created_by_user_id": made_by, "updated_by_user_id": made_by}
    directory = Directory(app, create_connection(tenant, **actors)[1])
    email = {"value": mail("scim"), "type": word("type"), "display": word("name")}
    user = directory.add_user(word("User-Name"), externalId=SUBJECT, emails=[email])
    for title in ("title", "next-title"):
        directory.patch(f"/Users/{user['id']}", replace("title", word(title)))
    group = directory.add_group("All")
    member = {"value": user["id"], "display": word("display")}
    directory.patch(f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [member]})
    directory.find(f'userName eq "{word("user-name")}"')


def _by_domain(tenant: Any) -> None:
    """A superadmin's domain, by which the person may join."""
    made_by = f"platform:{SUBJECT}"
    actors = {"created_by_user_id": made_by, "updated_by_user_id": made_by}
    _record_creation("domain.created", create_domain(tenant, **actors))
    names = {"first_name": word("first"), "last_name": word("last")}
    person = {"idp_user_id": SUBJECT, "email": mail("joined"), **names}
    made = create_join_request(tenant, **person, **actors)
    _record_creation("join_request.created", made)


def _record_creation(action: str, row: Any) -> None:
    """Let the past have a row that no request has made."""
    actor = Actor(getattr(row, "created_by_user_id", SYSTEM_CLI.id))
    with platform_transaction():
        record_creation(action, row, actor=actor)


def _post(sender: Sender, event_type: str, data: dict[str, Any], **options: Any) -> None:
    body = {"type": event_type, "timestamp": AT, "data": data}
    headers = {"User-Agent": mail("new"), "X-Request-Id": mail("new")}
    options |= {"message_id": f"msg {event_type}", "headers": headers}
    row = sender.deliver("standard_webhooks", body, **options)
    assert row.status == "succeeded", row.detail
