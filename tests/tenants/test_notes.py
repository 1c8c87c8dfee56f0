"""GET and PUT /v1/tenants/{tenant_id}/notes."""

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Permission, Role
from app.core.db.tenancy import PLATFORM_TENANT_ID
from tests.database import rows
from tests.factories import create_api_key, create_member, platform_token

TEXT = "They move to the annual plan in March."


@pytest.fixture
def put(api, tenant):
    def send(text=TEXT, **headers):
        path = f"/v1/tenants/{tenant.id}/notes"
        return api.put(path, token=platform_token(), json={"text": text}, headers=headers)

    return send


class TestNotes:
    def test_are_replaced(self, api, tenant, put):
        first, second = put("One"), put("Two")

        read = api.get(f"/v1/tenants/{tenant.id}/notes", token=platform_token())
        assert read.get_json() == second.get_json()
        assert read.get_json()["data"]["text"] == "Two"
        assert read.get_json()["data"]["updated_by"] == "platform:platform-operator"
        assert [one.headers["ETag"] for one in (first, second)] == ['"1"', '"2"']

    def test_are_empty_in_a_version_that_if_match_can_name(self, api, tenant, put):
        empty = api.get(f"/v1/tenants/{tenant.slug}/notes", token=platform_token())
        created = put("One", **{"If-Match": '"0"'})
        late = put("Two", **{"If-Match": '"0"'})

        assert empty.get_json()["data"] == {"text": "", "updated_at": None, "updated_by": None}
        assert empty.headers["ETag"] == '"0"'
        assert (created.status_code, late.status_code) == (200, 412)

    def test_have_at_most_10000_characters(self, put):
        assert put("n" * 10_000).status_code == 200
        assert put("n" * 10_001).status_code == 422

    def test_are_hidden_from_the_tenant(self, api, tenant, put):
        put()
        _, _, owner = create_member(tenant, role=Role.OWNER)
        key = create_api_key(tenant, [Permission.TENANTS_READ, Permission.AUDIT_READ])

        for token in (owner, key):
            assert api.get(f"/v1/tenants/{tenant.id}/notes", token=token).status_code == 403
            for path in ("/v1/audit-events", f"/v1/tenants/{tenant.id}/history", "/v1/events"):
                answer = api.get(path, token=token)
                assert "notes" not in answer.text, path

    def test_leave_an_audit_row_of_the_platform_without_the_text(self, api, tenant, put):
        put()

        (row,) = rows(AuditEvent, action="tenant.notes_changed")
        assert (row.tenant_id, row.target_id) == (PLATFORM_TENANT_ID, str(tenant.id))
        assert (row.before, row.after) == ({"characters": 0}, {"characters": len(TEXT)})
        history = api.get(f"/v1/tenants/{tenant.id}/history", token=platform_token())
        assert [one["action"] for one in history.get_json()["data"]] == ["tenant.notes_changed"]
