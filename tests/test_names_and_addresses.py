"""One rule for names and e-mail addresses at every door by which they come in."""

import re
from itertools import cycle

import pytest

from app.auth.models import ApiKey
from app.connections.models import ScimConnection
from app.memberships.models import Membership
from app.plans.models import PlanPreset
from app.scim.models import ScimUser
from app.tenants.models import Tenant
from app.users.models import User
from tests.database import execute
from tests.factories import create_member, create_tenant, create_user, platform_token
from tests.imports.files import bring_in, tenant_line, user_line
from tests.inbox.sending import Sender, all_rows
from tests.scim.directory import USER, Directory, create_connection, replace

BAD_ADDRESSES = [
    "not an email",
    "@",
    "a@b",
    "a@b@c.example",
    "ada@example.com\r\nBcc: eve@example.com",
    "ada\x01@example.com",
    "ada@exam\x7fple.com",
    "2024-01-01T00:00:00Z",
    f"{'a' * 320}@example.com",
    f"ada@{'a.' * 200}example",
    "a@" + "b" * 3000,
]
GOOD_ADDRESSES = {
    "Ada@Example.COM": "Ada@example.com",
    " ada@example.com ": "ada@example.com",
    "Ada <ada@example.com>": "ada@example.com",
}
LONG = "n" * 3000
CONTROLS = ["a\nb", "a\r\nb: c", "\x1b[31mred", "a\x7fb", "a\x85b", "\x08"]
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class World:
    def __init__(self, app, api, monkeypatch):
        self.app, self.api = app, api
        self.sender = Sender(app, monkeypatch)
        self.tenant = create_tenant(idp_org_id="org")
        self.user = create_user(self.tenant, email="old@example.com", first_name="Old")
        self.owner = create_member(self.tenant, role="owner")[2]
        self.platform = platform_token(tenant=self.tenant)
        self.directory = Directory(app, create_connection(self.tenant)[1])

    def post(self, path, **body):
        return self.api.post(path, token=self.platform, json=body).status_code < 300

    def patch(self, path, **body):
        return self.api.patch(path, token=self.platform, json=body).status_code < 300

    def bring_in(self, line):
        _, faults = bring_in(self.app, self.api, line)
        return not faults

    def deliver(self, type_, **data):
        body = {"type": type_, "timestamp": "2026-01-05T09:00:00Z", "data": data}
        assert self.sender.deliver("standard_webhooks", body).status == "succeeded"
        return True

    def add_member(self, **person):
        self.deliver("user.created", id="new", **person)
        return self.deliver("membership.created", organization_id="org", user_id="new")

    def provision(self, **values):
        body = {"schemas": [USER], "userName": "new", **values}
        return self.directory.post("/Users", body).status_code < 300

    def provision_and(self, method, **values):
        made = self.directory.add_user("new", emails=[{"value": "first@example.com"}])
        path = f"/Users/{made['id']}"
        if method == "PUT":
            answer = self.directory.put(path, {"schemas": [USER], "userName": "new", **values})
        else:
            answer = self.directory.patch(path, replace(None, values))
        return answer.status_code < 300


@pytest.fixture
def world(app, api, monkeypatch):
    return World(app, api, monkeypatch)


def emails(value):
    return [{"value": value, "type": "work"}]


ADDRESS_DOORS = {
    "API, create": lambda w, value: w.post("/v1/users", idp_user_id="new", email=value),
    "API, update": lambda w, value: w.patch(f"/v1/users/{w.user.id}", email=value),
    "import": lambda w, value: w.bring_in(user_line("new", email=value)),
    "identity event": lambda w, value: w.add_member(email=value),
    "SCIM, POST": lambda w, value: w.provision(emails=emails(value)),
    "SCIM, PUT": lambda w, value: w.provision_and("PUT", emails=emails(value)),
    "SCIM, PATCH": lambda w, value: w.provision_and("PATCH", emails=emails(value)),
    "SCIM, userName": lambda w, value: w.provision(userName=value),
}
TELLS = {"identity event", "SCIM, userName"}  # accept the person, without the address
PERSON_DOORS = {
    "API, create": lambda w, value: w.post(
        "/v1/users", idp_user_id="new", email="new@example.com", first_name=value
    ),
    "API, update": lambda w, value: w.patch(f"/v1/users/{w.user.id}", last_name=value),
    "API, id": lambda w, value: w.post("/v1/users", idp_user_id=value, email="a@b.example"),
    "API, id, update": lambda w, value: w.patch(f"/v1/users/{w.user.id}", idp_user_id=value),
    "import": lambda w, value: w.bring_in(user_line("new", first_name=value)),
    "import, id": lambda w, value: w.bring_in(user_line(value, email="a@b.example")),
    "identity event": lambda w, value: w.add_member(email="a@b.example", first_name=value),
    "identity event, one name": lambda w, value: w.add_member(email="", name=value),
    "SCIM, POST": lambda w, value: w.provision(name={"givenName": value}),
    "SCIM, PUT": lambda w, value: w.provision_and("PUT", name={"familyName": value}),
    "SCIM, PATCH": lambda w, value: w.provision_and("PATCH", name={"familyName": value}),
    "SCIM, displayName": lambda w, value: w.provision(displayName=value),
    "SCIM, userName": lambda w, value: w.provision(userName=value),
    "SCIM, externalId": lambda w, value: w.provision(externalId=value),
}
THING_DOORS = {
    "API, tenant": lambda w, value: w.post("/v1/tenants", idp_org_id="o2", name=value),
    "API, tenant, update": lambda w, value: w.patch(f"/v1/tenants/{w.tenant.id}", name=value),
    "API, slug": lambda w, value: w.post("/v1/tenants", idp_org_id="o2", name="n", slug=value),
    "API, tenant's id": lambda w, value: w.post("/v1/tenants", idp_org_id=value, name="n"),
    "API, membership's id": lambda w, value: w.post(
        "/v1/memberships/tenant", user_id=str(w.user.id), role="member", idp_membership_id=value
    ),
    "API, contact": lambda w, value: w.patch(
        f"/v1/tenants/{w.tenant.id}", primary_contact_name=value
    ),
    "import, tenant": lambda w, value: w.bring_in(tenant_line("o2", name=value)),
    "organization event": lambda w, value: w.deliver("organization.created", id="o2", name=value),
    "preset": lambda w, value: w.post("/v1/billing/plans", name=value, flags=[]),
    "preset, display": lambda w, value: w.post(
        "/v1/billing/plans", name="n", display_name=value, flags=[]
    ),
    "key": lambda w, value: w.post("/v1/api-keys", name=value, permissions=[]),
    "connection": lambda w, value: w.post("/v1/scim-connections", name=value),
}

NAME_DOORS = PERSON_DOORS | THING_DOORS


def stored_names():
    for user in all_rows(User):
        yield from (user.first_name, user.last_name, user.idp_user_id)
    for record in all_rows(ScimUser):
        name = record.attributes.get("displayName", "")
        yield from (record.user_name[:255], record.external_id[:255], name[:255])
    for membership in all_rows(Membership):
        yield membership.idp_membership_id
    for tenant in all_rows(Tenant):
        yield from (tenant.name, tenant.slug, tenant.idp_org_id, tenant.primary_contact_name)
    for preset in all_rows(PlanPreset):
        yield from (preset.name, preset.display_name or "")
    for row in (*all_rows(ApiKey), *all_rows(ScimConnection)):
        yield row.name


@pytest.mark.parametrize("value", BAD_ADDRESSES, ids=lambda value: repr(value[:30]))
@pytest.mark.parametrize("door", ADDRESS_DOORS)
def test_a_bad_address_is_refused_or_left_out(world, caplog, door, value):
    caplog.set_level("WARNING")
    before = {user.email for user in all_rows(User)}

    is_accepted = ADDRESS_DOORS[door](world, value)

    assert {user.email for user in all_rows(User)} <= before | {"", "first@example.com"}
    assert not is_accepted or door in TELLS
    if door == "identity event":
        assert "address_left_out" in {one.msg for one in caplog.records}


@pytest.mark.parametrize("value", GOOD_ADDRESSES)
@pytest.mark.parametrize("door", ADDRESS_DOORS)
def test_a_good_address_is_stored_without_a_name(world, door, value):
    """The case of the domain may stay."""
    assert ADDRESS_DOORS[door](world, value)

    stored = {user.email.lower() for user in all_rows(User)}
    assert GOOD_ADDRESSES[value].lower() in stored


@pytest.mark.parametrize(
    ("door", "value"),
    [*((door, LONG) for door in NAME_DOORS), *zip(NAME_DOORS, cycle(CONTROLS))],
    ids=lambda value: repr(value[:30]),
)
def test_no_name_is_long_or_has_control_characters(world, door, value):
    """One rule holds at all doors, so each door sees one of the control characters."""
    NAME_DOORS[door](world, value)

    for name in stored_names():
        assert len(name) <= 255
        assert not CONTROL.search(name)


@pytest.mark.parametrize("door", ["identity event", "SCIM, POST", "SCIM, PUT", "SCIM, PATCH"])
def test_a_long_name_of_a_provider_is_cut_and_logged(world, caplog, door):
    caplog.set_level("WARNING")
    assert PERSON_DOORS[door](world, LONG)

    names = {name for user in all_rows(User) for name in (user.first_name, user.last_name)}
    assert f"{LONG[:254]}…" in names
    assert "name_changed" in {one.msg for one in caplog.records}


def test_a_person_whose_stored_address_is_bad_can_still_be_ended(world):
    made = world.directory.add_user("new", emails=emails("new@example.com"))
    execute("""UPDATE scim_users SET attributes = '{"emails": [{"value": "@"}], "active": true}'""")

    answer = world.directory.patch(f"/Users/{made['id']}", replace("active", False))

    assert answer.status_code == 200
    assert answer.get_json()["active"] is False
