"""GET /v1/access/events: a client learns when to load the snapshot again."""

import time

import pytest

from app.auth.permissions import Permission
from tests.factories import create_api_key, create_member, create_preset, create_tenant

PATH = "/v1/access/events"


@pytest.fixture
def key(tenant):
    create_preset("free", beta=False)
    return create_api_key(tenant, [Permission.ACCESS_READ])


class TestStream:
    def test_tells_the_etag_of_the_new_snapshot(self, api, connect, tenant, key, owner):
        user, *_ = create_member(tenant)
        client = connect(PATH, key)
        first = client.next()

        answer = api.patch(f"/v1/users/{user.id}", token=owner, json={"is_active": False})
        assert answer.status_code == 200, answer.json
        began = time.monotonic()
        last_id, event = client.next()
        while (more := api.get("/v1/access/snapshot", token=key).headers["ETag"]) != event["etag"]:
            last_id, event = client.next()  # the event has its position now

        assert time.monotonic() - began < 5
        assert first[1]["type"] == event["type"] == "refetchSnapshot"
        assert first[1]["etag"] != event["etag"] == f'"{last_id}"' == more

    def test_of_the_present_snapshot_begins_without_an_event(self, connect, key):
        last_id, _ = connect(PATH, key).next()

        assert connect(PATH, key, **{"Last-Event-ID": last_id}).is_quiet()

    def test_is_refused(self, connect, key):
        other = create_tenant()
        flags = create_api_key(other, [Permission.FLAGS_READ])

        assert connect(f"{PATH}?tenant_id={other.id}", key).status == 404
        assert connect(PATH, flags).status == 403
