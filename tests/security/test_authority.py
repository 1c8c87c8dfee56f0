"""What a credential may do is what it may do when its request is complete, and where it is sent."""

import io
import json
from collections.abc import Callable

from app.users.models import User
from tests.concurrency import at_once
from tests.database import row
from tests.factories import create_member, create_tenant, platform_token


class LateBody(io.BytesIO):
    """A body whose sender does something else before sending it."""

    def __init__(self, content: bytes, meanwhile: Callable[[], object]) -> None:
        super().__init__(content)
        self._meanwhile = [meanwhile]

    def read(self, size: int | None = -1) -> bytes:
        while self._meanwhile:
            at_once([self._meanwhile.pop()])
        return super().read(size)


def send_late(api, path, *, token, meanwhile, **body):
    content = json.dumps(body).encode()
    return api.patch(
        path,
        token=token,
        input_stream=LateBody(content, meanwhile),
        content_length=len(content),
        content_type="application/json",
    )


class TestSlowSender:
    def test_is_judged_by_the_role_at_the_end_of_the_request(self, api, app):
        tenant = create_tenant()
        owner = create_member(tenant, role="owner")[2]
        _, membership, admin = create_member(tenant, role="admin")
        target, _, _ = create_member(tenant, role="viewer")
        demote = f"/v1/memberships/tenant/{membership.id}/role?role=viewer"

        answer = send_late(
            api,
            f"/v1/users/{target.id}",
            token=admin,
            meanwhile=lambda: api.patch(demote, token=owner),
            first_name="Changed",
        )

        assert answer.status_code == 403
        assert row(User, id=target.id).first_name == ""

    def test_changes_nothing_in_a_tenant_suspended_meanwhile(self, api, app):
        tenant = create_tenant()
        owner = create_member(tenant, role="owner")[2]
        suspend = f"/v1/tenants/{tenant.id}/active?is_active=false"
        operator = platform_token()

        answer = send_late(
            api,
            f"/v1/tenants/{tenant.id}",
            token=owner,
            meanwhile=lambda: api.patch(suspend, token=operator),
            name="Changed",
        )

        assert answer.get_json()["code"] == "tenant_suspended"


class TestIdempotencyKey:
    def test_of_a_superadmin_counts_in_one_organization(self, api, app):
        tenants = [create_tenant(), create_tenant()]
        body = {"idp_user_id": "u1", "email": "ada@example.com"}

        answers = [
            api.post(
                "/v1/users",
                token=platform_token(tenant=tenant),
                json=body,
                headers={"Idempotency-Key": "k"},
            )
            for tenant in tenants
        ]

        made_in = [answer.get_json()["data"]["tenant_id"] for answer in answers]
        assert made_in == [str(tenant.id) for tenant in tenants]
