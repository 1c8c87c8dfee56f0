"""``?as_of=``: each read answers what it answered at that moment."""

import json
import random
from urllib.parse import urlencode

import pytest

from app.audit.models import PastBase
from tests import database
from tests.factories import (
    create_member,
    limit_flag,
    platform_token,
    preset_flag,
)
from tests.history.writing import add_bases

ABOUT = {
    "action": {"name": "pay"},
    "resource": {"type": "doc", "id": "2", "properties": {"tenant_id": "{tenant}"}},
}
READS = (
    "/v1/tenants/{tenant}",
    "/v1/users?tenant_id={tenant}",
    "/v1/users?tenant_id={tenant}&is_active=true&limit=2",
    "/v1/memberships/tenant?tenant_id={tenant}",
    "/v1/custom-fields?tenant_id={tenant}",
    "/v1/billing/subscriptions?tenant_id={tenant}",
    "/v1/billing/flags/overrides?tenant_id={tenant}",
    "/v1/billing/flags?tenant_id={tenant}",
    "/v1/billing/plans",
    "/v1/roles?tenant_id={tenant}",
    "/v1/roles?tenant_id={tenant}&is_template=true&limit=2",
    "/v1/role-assignments?tenant_id={tenant}",
    "/v1/role-assignments?tenant_id={tenant}&api_key_id={key}",
    "/v1/resources?tenant_id={tenant}&limit=2",
    "/v1/resources/doc/0?tenant_id={tenant}",
    "/v1/permissions",
    "/v1/access/explain?permission=users:write&user_id={user}",
    "/v1/access/explain?permission=roles:read&key_id={key}",
    "/v1/access/explain?permission=pay&user_id={user}&resource_type=doc&resource_id=1",
)
QUESTIONS = (
    ("/ofrep/v1/evaluate/flags/beta", {"context": {"tenant_id": "{tenant}", "targetingKey": "x"}}),
    ("/access/v1/evaluation", {"subject": {"type": "api_key", "id": "{key}"}, **ABOUT}),
    ("/access/v1/evaluation", {"subject": {"type": "user", "id": "{user}"}, **ABOUT}),
    (
        "/access/v1/evaluation",
        {"subject": {"type": "email", "id": "Eve@{name}.example"}, **ABOUT},
    ),
)


class Life:
    """Random changes of some tenants, by requests."""

    def __init__(self, api, seed):
        self.api, self.random, self.token = api, random.Random(seed), platform_token()
        self.number = 0
        self.preset = self.call(
            "POST",
            "/v1/billing/plans",
            plan_body("free", preset_flag("beta", False), limit_flag("calls", 5)),
        )
        self.call("PUT", "/v1/permissions/pay", {})
        self.tenants = [self.create_tenant() for _ in range(3)]

    def call(self, method, path, body=None, **query):
        answer = self.api.request(method, path, token=self.token, json=body, query_string=query)
        assert answer.status_code in (200, 201, 202, 204, 404, 409), answer.text
        return answer.get_json()["data"] if answer.status_code in (200, 201) else None

    def name(self):
        self.number += 1
        return f"n{self.number}"

    def create_tenant(self):
        name = self.name()
        body = {"name": name, "slug": name, "idp_org_id": f"org_{name}"}
        tenant_id = self.call("POST", "/v1/tenants", body)["id"]
        eve = {"idp_user_id": f"eve_{name}", "email": f"eve@{name}.example"}
        key = {"name": "key", "permissions": ["users:read"]}
        one = {"tenant_id": tenant_id}
        return {
            "id": tenant_id,
            "name": name,
            "user": self.call("POST", "/v1/users", eve, **one)["id"],
            "key": self.call("POST", "/v1/api-keys", key, **one)["id"],
            **{kind: [] for kind in ("users", "overrides", "members", "roles", "assignments")},
        }

    def change(self):
        tenant = self.random.choice(self.tenants)
        one = {"tenant_id": tenant["id"]}
        kind = self.random.randrange(20)
        if kind >= 10:
            self.change_rights(kind, tenant, one)
        elif kind < 3 or not tenant["users"]:
            name = self.name()
            body = {
                "idp_user_id": name,
                "email": f"{name}@example.com",
                "meta_data": {"z": 1, "a": [1.50, None]},
            }
            user = self.call("POST", "/v1/users", body, **one)
            tenant["users"].append(user["id"])
        elif kind == 3:
            user_id = self.random.choice([*tenant["users"], tenant["user"]])
            body = {"user_id": user_id, "role": "member"}
            if made := self.call("POST", "/v1/memberships/tenant", body, **one):
                tenant["members"].append(made["id"])
        elif kind == 4:
            path = f"/v1/users/{self.random.choice(tenant['users'])}"
            changes = [{"first_name": self.name()}, {"is_active": self.random.random() < 0.5}]
            self.call("PATCH", path, self.random.choice(changes))
        elif kind == 5:
            path = f"/v1/users/{self.random.choice(tenant['users'])}/meta_data"
            self.call("PATCH", path, {"patches": {"b": self.name(), "z": None}})
        elif kind == 6:
            key = self.name()
            body = {"entity_type": "user", "field_key": key, "label": key, "field_type": "text"}
            self.call("POST", "/v1/custom-fields", body, **one)
        elif kind == 7:
            active = str(self.random.random() < 0.5).lower()
            self.call("PATCH", f"/v1/tenants/{tenant['id']}/active", is_active=active)
        elif kind == 8:
            self.call("PATCH", f"/v1/tenants/{tenant['id']}", {"name": self.name()})
        elif tenant["overrides"]:
            self.call("DELETE", f"/v1/billing/flags/overrides/{tenant['overrides'].pop()}")
        else:
            body = {"plan_preset_id": self.preset["id"], "flag_key": "beta", "flag_value": True}
            override = self.call("POST", "/v1/billing/flags/overrides", body, **one)
            tenant["overrides"].append(override["id"])

    def change_rights(self, kind, tenant, one):
        doc = f"/v1/resources/doc/{self.random.randrange(3)}"
        roles = [*tenant["roles"], *self.call("GET", "/v1/roles", is_template=True)]
        role = self.random.choice(roles)
        if kind == 10:
            needs = {"requires_flag": "beta", "requires_limit": "calls"}
            self.call("PUT", "/v1/permissions/pay", self.random.choice([{}, needs]))
        elif kind in (11, 12):
            key, above = self.name(), self.random.choice([None, "viewer"])
            body = {"key": key, "name": key, "permissions": ["pay", "roles:read"]}
            made = self.call("POST", "/v1/roles", {**body, "inherits": above}, **one)
            tenant["roles"].append(made)
        elif kind == 13:
            path = f"/v1/roles/{role['id']}"
            has_pay = sorted({*role["permissions"]} ^ {"pay"})
            for body in {"name": self.name()}, {"permissions": has_pay}:
                self.call("PATCH", path, body)
        elif kind == 14 and tenant["roles"]:
            path = f"/v1/roles/{tenant['roles'].pop(0)['id']}"
            self.call("DELETE", path, replace_with="viewer")
        elif kind == 15:
            parent = self.random.choice([None, {"type": "doc", "id": "0"}])
            body = {"parent": parent, "attributes": {"z": self.name(), "a": [1.50, None]}}
            self.call("PUT", doc, body, **one)
        elif kind == 16:
            self.call("DELETE", doc, **one)
        elif kind == 17 and tenant["assignments"]:
            path = f"/v1/role-assignments/{tenant['assignments'].pop()}"
            self.call("DELETE", path)
        else:
            target = {"api_key_id": tenant["key"]}
            if tenant["members"] and self.random.random() < 0.7:
                target = {"membership_id": self.random.choice(tenant["members"])}
            place = self.random.choice([None, {"type": "doc", "id": "0"}])
            body = {**target, "role": role["key"], "resource": place}
            if made := self.call("POST", "/v1/role-assignments", body, **one):
                tenant["assignments"].append(made["id"])

    def read(self, as_of=None):
        past = {} if as_of is None else {"as_of": as_of}
        found = {}
        for tenant in self.tenants:
            names = {**tenant, "tenant": tenant["id"]}
            for read in READS:
                path = read.format(**names)
                query = past if "?" not in path else f"{path.partition('?')[2]}&{urlencode(past)}"
                answer = self.api.get(path.partition("?")[0], token=self.token, query_string=query)
                found[path] = (answer.status_code, answer.get_data())
            for path, question in QUESTIONS:
                body = json.loads(fill(json.dumps(question), names))
                answer = self.api.post(path, token=self.token, json=body, query_string=past)
                found[path, json.dumps(body)] = (answer.status_code, answer.get_data())
        return found


def fill(text, names):
    for name in ("tenant", "user", "key", "name"):
        text = text.replace(f"{{{name}}}", names[name])
    return text


def plan_body(name, *flags):
    return {"name": name, "display_name": name, "flags": list(flags)}


@pytest.mark.parametrize("seed", range(2))
def test_equals_what_was_answered_at_each_position(app, api, seed):
    life = Life(api, seed)
    api.sequence()
    seen = []
    for _ in range(12):
        for _ in range(5):
            life.change()
        api.sequence()
        if life.random.random() < 0.4:
            add_bases(app, life.random.randint(1, 12))
        position = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]
        seen.append((position, life.read()))

    assert database.rows(PastBase)
    for position, answers in seen:
        missing = {path for path, (status, _) in answers.items() if status != 200}
        assert all("/v1/resources/doc/0" in path for path in missing)
        assert life.read(as_of=position) == answers


class TestOneTenant:
    @pytest.fixture
    def owner(self, tenant):
        return create_member(tenant, role="owner")[2]

    @pytest.fixture
    def life(self, api):
        """The platform's changes; a tenant with a user, and a position after them."""
        life = Life(api, 1)
        tenant = life.tenants[0]
        body = {"idp_user_id": "ada", "email": "ada@example.com", "first_name": "Ada"}
        user = life.call("POST", "/v1/users", body, tenant_id=tenant["id"])
        api.sequence()
        return life, tenant["id"], user

    def test_reads_its_own_past_with_the_platforms_plans(self, api, life):
        (life, tenant_id, user), names = life, ("first_name", "email", "updated_at")
        key = {"name": "k", "permissions": ["users:read", "flags:read"]}
        key = life.call("POST", "/v1/api-keys", key, tenant_id=tenant_id)
        token = key["secret"]
        before = api.get("/v1/billing/flags", token=token).get_json()
        feed = f"/v1/events?tenant_id={tenant_id}"
        reader = {"name": "r", "permissions": ["events:read"]}
        reader = life.call("POST", "/v1/api-keys", reader, tenant_id=tenant_id)
        api.sequence()
        position = api.get(feed, token=reader["secret"]).get_json()["next_cursor"]
        life.call("PATCH", f"/v1/users/{user['id']}", {"first_name": "Grace"})
        changed = {"flags": [preset_flag("beta", True)]}
        life.call("PATCH", f"/v1/billing/plans/{life.preset['id']}", changed)
        api.sequence()

        past = api.get(f"/v1/users/{user['id']}?as_of={position}", token=token)
        flags = api.get(f"/v1/billing/flags?as_of={position}", token=token)
        elsewhere = api.get(f"/v1/tenants?as_of={position}", token=life.token)

        assert [past.get_json()["data"][name] for name in names] == [user[name] for name in names]
        assert flags.get_json() == before
        again = api.get(f"/v1/users/{user['id']}?as_of={past.headers['X-As-Of']}", token=token)
        assert again.get_json()["data"]["first_name"] == "Ada"
        assert elsewhere.status_code == 422

    def test_the_last_value_of_a_repeated_parameter_counts(self, api, life):
        life, tenant_id, user = life
        other = life.tenants[1]["id"]
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        sent = f"as_of=0&as_of={now}&tenant_id={other}&tenant_id={tenant_id}"
        answer = api.get(f"/v1/users?{sent}", token=life.token)

        assert user["id"] in [each["id"] for each in answer.get_json()["data"]]

    @pytest.mark.parametrize(
        ("method", "path", "as_of", "word"),
        [
            ("GET", "/v1/users", "2999-01-01T00:00:00Z", "future"),
            ("GET", "/v1/users", "2026-01-01T00:00:00", "offset"),
            ("GET", "/v1/users", "yesterday", "position"),
            ("GET", "/v1/users", "%00", "position"),
            ("GET", "/v1/users", "", "position"),
            ("GET", "/v1/users", "99999999999999999999", "position"),
            ("GET", "/v1/users?include=tenant", "2026-01-01T00:00:00Z", "include"),
            ("GET", "/v1/users?meta_data.x=1", "2026-01-01T00:00:00Z", "meta_data.x"),
            ("GET", "/v1/api-keys", "2026-01-01T00:00:00Z", "does not read the past"),
            ("POST", "/v1/users", "2026-01-01T00:00:00Z", "does not read the past"),
        ],
    )
    def test_refuses(self, api, owner, method, path, as_of, word):
        sent = f"{path}{'&' if '?' in path else '?'}as_of={as_of}"

        answer = api.request(method, sent, token=owner)

        assert answer.status_code == 422, answer.text
        (entry,) = answer.get_json()["detail"]
        assert entry["loc"] == ["query", "as_of"]
        assert word in entry["msg"]

    def test_refuses_a_position_that_no_event_has_yet(self, api, life):
        answer = api.get("/v1/users?as_of=999999999", token=life[0].token)

        assert answer.status_code == 422
        assert "no event has this position yet" in answer.text

    def test_there_is_nothing_before_the_tenant(self, api, life):
        life, tenant_id, user = life
        early = "2020-01-01T00:00:00Z"

        for path in (
            f"/v1/tenants/{tenant_id}?as_of={early}",
            f"/v1/users/{user['id']}?as_of={early}",
            f"/v1/users?tenant_id={tenant_id}&as_of={early}",
        ):
            assert api.get(path, token=life.token).status_code == 404
        assert api.get(f"/v1/users?as_of={early}", token=life.token).get_json()["data"] == []

    def test_what_is_said_about_a_row_does_not_change_it(self, api, life):
        life, tenant_id, user = life
        life.call("PUT", f"/v1/tenants/{tenant_id}/notes", {"text": "calls on Mondays"})
        owner = {"user_id": user["id"], "role": "owner"}
        life.call("POST", "/v1/memberships/tenant", owner, tenant_id=tenant_id)
        life.call("POST", f"/v1/users/{user['id']}/export")
        api.sequence()
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        assert life.read(as_of=now) == life.read()

    def test_a_row_without_its_creation_is_absent(self, api, life):
        life, _, user = life
        life.call("PATCH", f"/v1/users/{user['id']}", {"first_name": "Grace"})
        api.sequence()
        database.execute("DELETE FROM audit_positions WHERE target_type = 'user' AND version = 1")
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]

        past = api.get(f"/v1/users?as_of={now}", token=life.token)

        assert past.get_json()["data"] == []

    def test_what_was_erased_is_gone_from_the_past(self, app, api, life):
        life, tenant_id, user = life
        now = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]
        result = app.test_cli_runner().invoke(args=["users", "erase", user["id"], "--yes"])
        assert result.exit_code == 0, result.output
        api.sequence()

        past = api.get(f"/v1/users?tenant_id={tenant_id}&as_of={now}", token=life.token)

        assert past.status_code == 200
        assert '"ada' not in past.text.lower()


def test_a_view_has_the_columns_of_its_table(app):
    columns = database.query(
        "SELECT table_name, column_name, table_schema FROM information_schema.columns"
        " WHERE table_schema IN ('past', 'public') AND table_name IN"
        " (SELECT table_name FROM information_schema.views WHERE table_schema = 'past')"
    )
    found = {"past": set(), "public": set()}
    for table, column, schema in columns:
        found[schema].add((table, column))
    only_there = ("trail", "role_trail", "changes", "rows", "starts", "oldest")
    found["past"] -= {each for each in found["past"] if each[0] in only_there}

    assert found["past"] == found["public"] != set()
