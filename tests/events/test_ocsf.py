"""The example of every type of events is a valid record of OCSF."""

import hashlib
import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from app.core import json_text
from app.events.catalogue import CATALOGUE
from app.events.ocsf import class_of, to_ocsf

VENDOR = Path(__file__).parent / "vendor"
SCHEMA = json.loads((VENDOR / "ocsf-1.4.0.json").read_text())


def faults(record):
    schema = {**SCHEMA, "$ref": f"#/$defs/{record['class_uid']}"}
    record = json.loads(json_text.dumps(record))
    return [fault.message for fault in Draft202012Validator(schema).iter_errors(record)]


@pytest.fixture(scope="module")
def examples(app):
    document = app.test_client().get("/openapi.json").get_json()
    bodies = {
        name: item["post"]["requestBody"]["content"]["application/json"]["example"]
        for name, item in document["webhooks"].items()
    }
    return {
        name: {**body, "timestamp": datetime.fromisoformat(body["timestamp"])}
        for name, body in bodies.items()
    }


class TestVendored:
    def test_checksums(self):
        listed = re.findall(
            r"^\| (\S+) \| ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.M
        )

        assert dict(listed) == {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in VENDOR.iterdir()
            if path.name != "README.md"
        }


class TestRecord:
    @pytest.mark.parametrize("name", sorted(CATALOGUE))
    def test_of_each_type_is_valid_also_without_data(self, examples, name):
        event = examples[name]
        rest = {key: event[key] for key in event if key not in ("data", "changes")}

        assert faults(to_ocsf(event)) == []
        assert faults(to_ocsf({**rest, "truncated": True})) == []

    def test_of_the_platform_is_valid(self, examples):
        event = {**examples["plan.created"], "tenant_id": None, "tenant": None}

        assert faults(to_ocsf(event)) == []

    def test_refuses_what_ocsf_does_not_know(self, examples):
        record = to_ocsf(examples["user.created"])

        assert faults({**record, "colour": "red"}) != []
        assert faults({**record, "activity_id": 50}) != []

    def test_says_who_what_and_when(self, examples):
        event = examples["membership.role_changed"]

        record = to_ocsf(event)

        assert record["time"] == round(event["timestamp"].timestamp() * 1000)
        assert record["group"]["uid"] == event["tenant_id"]
        assert record["user"]["uid"] == event["data"]["user_id"]
        assert record["privileges"] == [event["data"]["role"]]
        assert record["metadata"]["uid"] == event["id"]
        assert record["unmapped"]["position"] == event["position"]

    @pytest.mark.parametrize(
        ("name", "class_uid", "activity"),
        [
            ("user.created", 3001, "Create"),
            ("user.erased", 3001, "Delete"),
            ("membership.created", 3006, "Add User"),
            ("membership.deactivated", 3006, "Remove User"),
            ("membership.role_changed", 3006, "Assign Privileges"),
            ("tenant.suspended", 3004, "Suspend"),
            ("tenant.updated", 3004, "Update"),
            ("plan.deleted", 3004, "Delete"),
            ("sso_connection.activated", 3004, "Activate"),
            ("webhook_endpoint.disabled", 3004, "Disable"),
        ],
    )
    def test_has_the_activity_of_the_schema(self, name, class_uid, activity):
        found, activity_id = class_of(name)

        captions = SCHEMA["$defs"][str(class_uid)]["properties"]["activity_id"]["x-captions"]
        assert (found, captions[str(activity_id)]) == (class_uid, activity)
