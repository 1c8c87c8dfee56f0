"""Random changes of three tenants, and what can be read of them."""

import json
import random
from urllib.parse import urlencode

from app.core.clock import utcnow
from tests.factories import PLATFORM_SUBJECT, limit_flag, platform_token, preset_flag
from tests.history import exports

ABOUT = {
    "action": {"name": "pay"},
    "resource": {"type": "doc", "id": "2", "properties": {"tenant_id": "{tenant}"}},
}
READS = (
    "/v1/tenants/{tenant}",
    "/v1/tenants/{tenant}/meta_data",
    "/v1/custom-fields/json-schema?entity_type=user&tenant_id={tenant}",
    "/v1/users?tenant_id={tenant}&is_active=true&limit=2",
    "/v1/billing/subscriptions?tenant_id={tenant}&status_class=ended",
    "/v1/billing/flags?tenant_id={tenant}",
    "/v1/billing/plans",
    "/v1/roles?tenant_id={tenant}&is_template=true&limit=2",
    "/v1/role-assignments?tenant_id={tenant}&api_key_id={key}",
    "/v1/resources?tenant_id={tenant}&limit=2",
    "/v1/resources/doc/0?tenant_id={tenant}",
    "/v1/permissions",
    "/v1/access/explain?permission=users:write&user_id={user}",
    "/v1/access/explain?permission=roles:read&key_id={key}",
    "/v1/access/explain?permission=pay&user_id={user}&resource_type=doc&resource_id=1",
)
SUBSCRIPTION = {
    "bp_customer_id": "cus_1",
    "bp_plan_id": "price_1",
    "start_date": "2026-01-01T00:00:00Z",
    "billing_cycle": "monthly",
    "per_cycle_billing_amount": 4900,
}
PRO_FLAGS = (preset_flag("beta", True), limit_flag("calls", 50))
QUESTIONS = (
    ("/ofrep/v1/evaluate/flags/beta", {"context": {"tenant_id": "{tenant}", "targetingKey": "x"}}),
    ("/access/v1/evaluation", {"subject": {"type": "api_key", "id": "{key}"}, **ABOUT}),
    ("/access/v1/evaluation", {"subject": {"type": "user", "id": "{user}"}, **ABOUT}),
    (
        "/access/v1/evaluation",
        {"subject": {"type": "email", "id": "Eve@{name}.example"}, **ABOUT},
    ),
)


KINDS = (
    *("users", "overrides", "members", "roles", "assignments"),
    *("subscriptions", "fields"),
)


class Life:
    """Random changes of some tenants, by requests."""

    def __init__(self, api, seed, subject=PLATFORM_SUBJECT):
        self.api, self.random = api, random.Random(seed)
        self.token = platform_token(subject=subject)
        self.number = 0
        self.preset = self.call(
            "POST",
            "/v1/billing/plans",
            plan_body("free", preset_flag("beta", False), limit_flag("calls", 5)),
        )
        self.other = self.call("POST", "/v1/billing/plans", plan_body("pro", *PRO_FLAGS))
        self.call("PUT", "/v1/permissions/pay", {})
        self.tenants = [self.create_tenant() for _ in range(3)]

    def call(self, method, path, body=None, headers=None, **query):
        sent = {"json": body, "query_string": query, "headers": headers}
        answer = self.api.request(method, path, token=self.token, **sent)
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
            **{kind: [] for kind in KINDS},
        }

    def change(self):
        tenant = self.random.choice(self.tenants)
        one = {"tenant_id": tenant["id"]}
        kind = self.random.randrange(30)
        if kind >= 20:
            self.change_plan(kind, tenant, one)
        elif kind >= 10:
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

    def change_plan(self, kind, tenant, one):
        """Change plans, subscriptions, custom fields and their values, memberships or overrides."""
        chance = self.random
        is_active = str(chance.random() < 0.5).lower()
        if kind in (20, 21) or (kind in (22, 23) and not tenant["subscriptions"]):
            path, body = "/v1/billing/subscriptions", {**SUBSCRIPTION, **self.some_plan()}
            body["bp_subscription_id"] = self.name()
            tenant["subscriptions"].append(self.call("POST", path, body, **one)["id"])
        elif kind == 22:
            path = f"/v1/billing/subscriptions/{chance.choice(tenant['subscriptions'])}"
            source = {"X-Source-Timestamp": utcnow().isoformat()} if chance.random() < 0.5 else {}
            body = {**self.some_plan(), "billing_city": self.name()}
            self.call("PATCH", path, body, source)
        elif kind == 23:
            path = f"/v1/billing/subscriptions/{chance.choice(tenant['subscriptions'])}/cancel"
            self.call("POST", path, {"at_period_end": chance.random() < 0.5})
        elif kind == 24:
            flags = [preset_flag("beta", chance.random() < 0.5), limit_flag("calls", 7)]
            path = f"/v1/billing/plans/{chance.choice([self.preset, self.other])['id']}"
            self.call("PATCH", path, {"flags": flags, "display_name": self.name()})
        elif kind == 25 or (kind in (26, 27) and not tenant["fields"]):
            key, entity = self.name(), chance.choice(["user", "tenant"])
            body = {"entity_type": entity, "field_key": key, "label": key, "field_type": "text"}
            made = self.call("POST", "/v1/custom-fields", {**body, "is_searchable": True}, **one)
            tenant["fields"].append(made)
        elif kind == 26:
            field = chance.choice(tenant["fields"])
            path = f"/v1/custom-fields/{field['id']}"
            self.call("PATCH", path, {"label": self.name(), "sort_order": chance.randrange(9)})
            self.call("POST", f"{path}/{chance.choice(['archive', 'restore'])}", {"confirm": True})
            if chance.random() < 0.3:
                self.call("DELETE", path)
        elif kind == 27:
            field = chance.choice(tenant["fields"])
            path = f"/v1/tenants/{tenant['id']}"
            if field["entity_type"] == "user":
                path = f"/v1/users/{chance.choice([*tenant['users'], tenant['user']])}"
            self.call("PATCH", f"{path}/meta_data", {"patches": {field["field_key"]: self.name()}})
        elif kind == 28 and tenant["members"]:
            path = f"/v1/memberships/tenant/{chance.choice(tenant['members'])}"
            self.call("PATCH", f"{path}/role", role=chance.choice(["member", "admin"]))
            self.call("PATCH", f"{path}/active", is_active=is_active)
        elif tenant["overrides"]:
            path = f"/v1/billing/flags/overrides/{chance.choice(tenant['overrides'])}"
            until = chance.choice([None, "2999-01-01T00:00:00Z"])
            self.call("PATCH", path, {"flag_value": is_active == "true", "expires_at": until})

    def some_plan(self):
        status = self.random.choice(["active", "trialing", "past_due"])
        return {"plan_name": self.random.choice(["free", "pro"]), "bp_status": status}

    def read(self, as_of=None):
        """The exports of each tenant, and answers that no export has; as of a position if given."""
        past = {} if as_of is None else {"as_of": as_of}
        found = {}
        for tenant in self.tenants:
            found[tenant["id"]] = (200, exports.read(tenant["id"], as_of))
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
