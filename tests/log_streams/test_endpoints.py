"""/v1/log-streams."""

from datetime import timedelta

from app.core.clock import utcnow
from app.core.jobs.queues import Queue, connection, queue_named
from app.log_streams import jobs
from app.log_streams.models import LogStream
from tests.database import query, row
from tests.factories import (
    create_log_stream,
    create_member,
    create_tenant,
    create_user,
    platform_token,
)
from tests.log_streams.support import change, progress

BODY = {
    "kind": "https",
    "config": {"url": "https://logs.example.com/", "headers": {"X-Key": "7f2c"}},
}


def create(api, token, **values):
    return api.post("/v1/log-streams", token=token, json={**BODY, **values})


class TestCreate:
    def test_shows_no_secret(self, api, owner, tenant):
        answer = create(api, owner)

        assert answer.status_code == 201, answer.text
        found = answer.get_json()["data"]
        assert found["tenant_id"] == str(tenant.id)
        assert found["config"] == {"url": "https://logs.example.com/"}
        assert (found["state"], found["types"], found["format"]) == ("active", ["*"], "native")
        texts = query("SELECT before::text || after::text AS found FROM audit_events")
        assert not any("7f2c" in one.found for one in texts)
        assert "7f2c" not in progress(row(LogStream)).secrets

    def test_names_wrong_settings(self, api, owner):
        answer = create(api, owner, config={"uri": "https://logs.example.com/"})

        places = [one["loc"] for one in answer.get_json()["detail"]]
        assert answer.status_code == 422
        assert places == [["body", "config", "url"], ["body", "config", "uri"]]

    def test_refuses_the_platforms_types(self, api, owner):
        answer = create(api, owner, types=["plan.*"])

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "types", 0]

    def test_needs_the_permissions(self, api, tenant):
        _, _, member = create_member(tenant, role="member")

        assert create(api, member).status_code == 403
        assert api.get("/v1/log-streams", token=member).status_code == 403

    def test_has_a_bound(self, api, owner):
        answers = [create(api, owner).status_code for _ in range(11)]

        assert answers == [201] * 10 + [409]

    def test_begins_where_it_should(self, app, api):
        token = platform_token()
        change(app, create_user(create_tenant()), "Ada", "Grace")
        (feed,) = query("SELECT last_position AS last FROM event_feed")
        hour = timedelta(hours=1)
        starts = [
            ({}, feed.last),
            ({"from": "now"}, feed.last),
            ({"from": "beginning"}, 0),
            ({"from": str(feed.last - 1)}, feed.last - 1),
            ({"from": feed.last - 1}, feed.last - 1),
            ({"from": (utcnow() - hour).isoformat()}, 0),
        ]

        for values, position in starts:
            answer = create(api, token, **values)
            assert answer.status_code == 201, answer.text
            stream = row(LogStream, id=answer.get_json()["data"]["id"])
            assert progress(stream).position == position, values
        for values in ({"from": "9"}, {"from": "x"}, {"from": True}, {"from": "12:00"}):
            assert create(api, token, **values).status_code == 422

    def test_begins_at_no_time_in_the_future(self, api, owner):
        answer = create(api, owner, **{"from": "2099-01-01T00:00:00Z"})

        (entry,) = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert entry["loc"] == ["body", "from"]
        assert entry["msg"] == "Value error, must not be in the future"
        assert entry["input"] == "2099-01-01T00:00:00Z"


class TestList:
    def test_filters_by_state(self, api, owner, tenant):
        paused, active = (create_log_stream(tenant.id, state=one) for one in ("paused", "active"))

        for state, ids in (("paused", [paused.id]), ("active", [active.id]), ("error", [])):
            answer = api.get(f"/v1/log-streams?state={state}", token=owner)
            assert [row["id"] for row in answer.get_json()["data"]] == list(map(str, ids))


class TestUpdate:
    def test_replaces_all_settings(self, api, owner, tenant):
        stream = create_log_stream(tenant.id)
        path = f"/v1/log-streams/{stream.id}"
        before = progress(stream).secrets

        wrong = api.patch(path, token=owner, json={"config": {"headers": {}}})
        answer = api.patch(path, token=owner, json={"config": BODY["config"], "types": ["user.*"]})

        assert wrong.status_code == 422
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["data"]["types"] == ["user.*"]
        assert progress(stream).secrets != before


class TestTest:
    def test_is_one_at_a_time(self, app, api, owner, tenant):
        stream = create_log_stream(tenant.id, config={"url": "http://127.0.0.1:9/"})
        path = f"/v1/log-streams/{stream.id}/test"
        with app.app_context():
            queue = queue_named(Queue.MAINTENANCE, connection())

            statuses = [api.post(path, token=owner).status_code for _ in range(3)]
            counts = [queue.count]
            jobs.test_log_stream(str(stream.id))
            api.post(path, token=owner)
            counts.append(queue.count)

        assert statuses == [202] * 3
        assert counts == [1, 2]
        assert progress(stream).tested_at is not None

    def test_has_its_result_in_the_command_that_shows_the_stream(self, app, tenant):
        stream = create_log_stream(tenant.id, config={"url": "http://127.0.0.1:9/"})
        with app.app_context():
            jobs.test_log_stream(str(stream.id))

        shown, listed = (
            app.test_cli_runner().invoke(args=["log-streams", *words]).stdout
            for words in (["show", str(stream.id)], ["list"])
        )

        error = progress(stream).test_error
        assert error is not None
        assert f'"test_error":"{error}"' in shown
        assert error in listed


class TestStates:
    def test_pause_and_resume(self, api, owner, tenant):
        stream = create_log_stream(tenant.id, state="active")
        path = f"/v1/log-streams/{stream.id}"

        paused = api.post(f"{path}/pause", token=owner).get_json()["data"]
        assert (paused["state"], progress(stream).next_attempt_at) == ("paused", None)
        active = api.post(f"{path}/resume", token=owner).get_json()["data"]
        assert active["state"] == "active"
        assert progress(stream).next_attempt_at is not None
        actions = query("SELECT action FROM audit_events WHERE target_type = 'log_stream'")
        assert {one.action for one in actions} == {
            "log_stream.created",
            "log_stream.paused",
            "log_stream.resumed",
        }

    def test_progress_is_an_include(self, api, owner, tenant):
        stream = create_log_stream(tenant.id)

        answer = api.get(f"/v1/log-streams/{stream.id}?include=progress", token=owner)

        found = answer.get_json()["data"]["progress"]
        assert found["written_until"] is not None
        assert found["last_object"] is None

    def test_rewind_needs_a_place(self, api, owner, tenant):
        stream = create_log_stream(tenant.id)
        path = f"/v1/log-streams/{stream.id}/rewind"

        assert api.post(path, token=owner, json={}).status_code == 422
        assert api.post(path, token=owner, json={"from": "beginning"}).status_code == 200
