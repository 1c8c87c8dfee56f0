"""``controlplane.access``: a program decides about access in its memory."""

import json

import pytest

from app.auth.permissions import Permission
from tests.conftest import serving
from tests.docs.pages import PROJECT
from tests.factories import create_api_key, create_member, create_preset, create_tenant, user_token
from tests.ports import free_port
from tests.running.serving import HOST, wait_until
from tests.streams.support import sequencing, stream_process

CASES = PROJECT / "clients" / "access-cases.jsonl"
DOOR = {"type": "door", "id": "1"}


def test_snapshots_decide_as_the_service(importable):
    from controlplane.access import Snapshot

    worlds = [json.loads(line) for line in CASES.read_text().splitlines()]
    wrong = [
        (question, code, found)
        for world in worlds
        for question, code in world["cases"]
        if (found := Snapshot(world["snapshot"]).refusal(**question)) != code
    ]

    assert wrong == []
    assert len({code for world in worlds for _, code in world["cases"]}) > 8


class TestAccess:
    @pytest.fixture
    def tenant(self, app):
        create_preset("free", beta=False)
        return create_tenant()

    def test_is_loaded_at_once_and_follows_changes(
        self, app, api, environment, with_limits, importable, tenant, tmp_path
    ):
        from controlplane.access import Access

        user, _, _ = create_member(tenant, "viewer")
        _, _, owner = create_member(tenant, "owner")
        port = free_port()
        with (
            sequencing(app),
            serving(with_limits(STREAM_URL=f"http://{HOST}:{port}")) as url,
            stream_process(environment, tmp_path, port=port),
        ):
            access = Access(url, create_api_key(tenant, [Permission.ACCESS_READ]))
            assert access.check(str(user.id), "users:read", DOOR)
            assert access.check({"type": "email", "id": user.email}, {"name": "users:read"}, DOOR)
            assert access.refusal(str(user.id), "users:write", DOOR) == "permission_denied"

            answer = api.patch(f"/v1/users/{user.id}", token=owner, json={"is_active": False})
            assert answer.status_code == 200, answer.json
            wait_until(lambda: not access.check(str(user.id), "users:read", DOOR), 20)
            access.close()

        assert access.refusal(str(user.id), "users:read", DOOR) == "user_inactive"

    def test_of_a_refused_credential_is_an_error(self, app, with_limits, importable, tenant):
        from controlplane import ApiError
        from controlplane.access import Access

        with serving(with_limits()) as url, pytest.raises(ApiError) as refused:
            Access(url, user_token(create_member(tenant, "viewer")[0]))

        assert refused.value.code == "permission_denied"

    def test_of_an_unavailable_service_refuses(self, importable):
        from controlplane.access import Access

        access = Access(f"http://{HOST}:{free_port()}", "sk_any")
        access.close()

        assert access.refusal("ada", "users:read", DOOR) == "unavailable"
