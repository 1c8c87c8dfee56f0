"""Every action of the audit trail is an event or internal, and every event is described."""

import ast
import re

from jsonschema import Draft202012Validator

from app.audit.outbox import EVENT_TYPES, INTERNAL
from app.events.catalogue import CATALOGUE
from tests.test_architecture import imports_of, modules

ACTION = re.compile(r"[a-z_]+\.[a-z_]+")
NOT_ACTIONS = {"Statement", "by_id", "columns"}  # calls with texts of this form
# What rules of flags compare, and a view.
NO_ACTIONS = {"context.resource_", "tenant.id", "past.trail"}
WITHOUT_AUDIT_ROW = {"email.bounced", "email.complained"}
NAMED_ELSEWHERE = {
    "limit.overrun",
    "limit.reached",
    "limit.warning",  # by app/audit, which is not searched
    "role_assignment.expired",  # by a function of the database
}


def named_actions() -> set[str]:
    """Each text in the form of an action in the modules that import the audit trail.

    The names of statements and columns have this form too.
    """
    found = set()
    for name, path in modules():
        if not any(one.startswith("app.audit") for one in imports_of(path)):
            continue
        tree = ast.parse(path.read_text())
        statements = {
            id(part)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func).rpartition(".")[2] in NOT_ACTIONS
            for argument in call.args
            for part in (argument, *getattr(argument, "values", ()))  # of a formatted text
        }
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and ACTION.fullmatch(node.value)
            and node.value not in NO_ACTIONS
            and id(node) not in statements
            and not name.startswith(("app.audit", "app.events.catalogue"))
        }
    return found


class TestActions:
    def test_each_is_an_event_or_internal_with_a_reason(self):
        known = {*EVENT_TYPES, *INTERNAL, *WITHOUT_AUDIT_ROW}

        assert named_actions() | NAMED_ELSEWHERE == known
        assert EVENT_TYPES.keys().isdisjoint(INTERNAL)
        assert all(INTERNAL.values())

    def test_each_event_is_described(self):
        assert set(CATALOGUE) == {*EVENT_TYPES.values(), *WITHOUT_AUDIT_ROW}


class TestDocument:
    def test_lists_every_type_with_a_schema_and_an_example_that_fits(self, app):
        document = app.test_client().get("/openapi.json").get_json()

        assert document["webhooks"].keys() == CATALOGUE.keys()
        for name, item in document["webhooks"].items():
            content = item["post"]["requestBody"]["content"]["application/json"]
            schema = {**content["schema"], "components": document["components"]}
            assert content["example"]["type"] == name
            assert list(Draft202012Validator(schema).iter_errors(content["example"])) == []
