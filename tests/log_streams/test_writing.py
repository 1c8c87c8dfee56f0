"""Batches, retries and the states of log streams."""

import json
from datetime import timedelta

import pytest

from app.core.clock import utcnow
from app.log_streams import runner, work
from app.log_streams.kinds import KINDS
from app.log_streams.kinds.kind import Limits
from app.log_streams.models import LogStream
from tests.database import execute, query, row
from tests.factories import create_log_stream, create_tenant, create_user, platform_token
from tests.log_streams.support import change, make_due, names, progress, write_due, write_due_once
from tests.webhooks.deliveries.receiving import receiver


@pytest.fixture
def target(app):
    with receiver() as found:
        yield found


def create(target, tenant=None, **values):
    config = {"url": target.url, "headers": {"X-Key": "7f2c"}}
    return create_log_stream(
        tenant and tenant.id, config=config, state="active", types=["user.updated"], **values
    )


class TestBatches:
    def test_come_in_order_with_positions_and_headers(self, app, target):
        user = create_user(create_tenant())
        create(target)
        change(app, user, "Ada", "Grace", "Joan")

        write_due(app)

        [one] = target.received
        positions = [json.loads(line)["position"] for line in one.body.splitlines()]
        assert names(one.body) == ["Ada", "Grace", "Joan"]
        assert positions == sorted(positions)
        assert one.headers["x-key"] == "7f2c"
        assert one.headers["content-type"] == "application/x-ndjson"

    def test_hold_a_tenants_own_events_as_it_sees_them(self, app, target):
        own, other = create_tenant(), create_tenant()
        users = [create_user(own), create_user(other)]
        create(target, own)
        change(app, users[1], "Mallory")
        change(app, users[0], "Ada")

        write_due(app)

        [one] = target.received
        [record] = map(json.loads, one.body.splitlines())
        assert record["data"]["first_name"] == "Ada"
        assert record["tenant_id"] == str(own.id)
        assert isinstance(record["position"], str)

    def test_are_cut_at_the_limits_and_follow_at_once(self, app, target, monkeypatch):
        small = Limits(records=2)
        monkeypatch.setitem(KINDS, "https", KINDS["https"]._replace(limits=small))
        user = create_user(create_tenant())
        create(target)
        change(app, user, "A", "B", "C", "D", "E")

        write_due(app)

        assert [names(one.body) for one in target.received] == [["A", "B"], ["C", "D"], ["E"]]


class TestFaults:
    def test_retry_the_same_batch_and_end_the_state_error(self, app, target):
        user = create_user(create_tenant())
        stream = create(target)
        target.status = 503
        change(app, user, "Ada")
        for _ in range(3):
            make_due(stream)
            write_due(app)
        failing = row(LogStream, id=stream.id)
        change(app, user, "Grace")

        target.status = 200
        for _ in range(2):
            make_due(stream)
            write_due(app)

        assert (failing.state, failing.error) == (
            "error",
            "The target answers with status 503.",
        )
        assert [names(one.body) for one in target.received] == [["Ada"]] * 4 + [["Grace"]]
        stored = row(LogStream, id=stream.id)
        assert (stored.state, stored.error) == ("active", None)
        assert progress(stream).failures == 0

    def test_wait_as_long_as_the_target_asks(self, app, target):
        stream = create(target)
        target.status, target.headers = 429, {"Retry-After": "1800"}
        change(app, create_user(create_tenant()), "Ada")

        write_due(app)

        waits = progress(stream).next_attempt_at - utcnow()
        assert timedelta(minutes=29) < waits <= timedelta(minutes=30)

    def test_a_refusal_of_credentials_pauses_at_once(self, app, api, target):
        stream = create(target)
        target.status = 401
        change(app, create_user(create_tenant()), "Ada")

        write_due(app)

        assert row(LogStream, id=stream.id).state == "invalid"
        assert progress(stream).next_attempt_at is None
        [event] = query("SELECT type FROM event_outbox")
        assert event.type == "log_stream.refused"

        target.status = 200
        api.post(f"/v1/log-streams/{stream.id}/resume", token=platform_token())
        write_due(app)
        assert names(target.received[-1].body) == ["Ada"]

    def test_an_error_of_the_service_is_tried_again(self, app, target, monkeypatch):
        def deliver(*_):
            raise ZeroDivisionError

        monkeypatch.setitem(KINDS, "https", KINDS["https"]._replace(deliver=deliver))
        stream = create(target)
        change(app, create_user(create_tenant()), "Ada")

        write_due(app)

        found = progress(stream)
        assert found.last_error == "The service has failed: ZeroDivisionError."
        assert (found.failures, found.next_attempt_at > utcnow()) == (1, True)

    def test_removed_events_are_not_passed_over(self, app, target):
        stream = create(target)
        change(app, create_user(create_tenant()), "Ada")
        execute("UPDATE event_feed SET removed_position = last_position")

        write_due(app)

        stored = row(LogStream, id=stream.id)
        assert (stored.state, stored.error) == ("invalid", work.GONE)
        assert target.received == []


class TestClaims:
    def test_a_paused_stream_finishes_its_batch(self, app, api, target):
        stream = create(target)
        change(app, create_user(create_tenant()), "Ada")

        def pause(_):
            path = f"/v1/log-streams/{stream.id}/pause"
            return api.post(path, token=platform_token()).status_code

        target.judge = pause
        write_due(app)

        found = progress(stream)
        assert found.last_object is not None
        assert found.next_attempt_at is None
        assert row(LogStream, id=stream.id).state == "paused"

    def test_a_stream_that_is_paused_before_its_batch_is_read_stays_paused(self, app, api, target):
        stream = create(target)
        change(app, create_user(create_tenant()), "Ada")
        [one] = runner.claim(app)

        api.post(f"/v1/log-streams/{stream.id}/pause", token=platform_token())
        runner.write(app, one)

        assert target.received == []
        assert progress(stream).next_attempt_at is None

    def test_an_attempt_whose_claim_was_replaced_changes_nothing(self, app, api, target):
        stream = create(target)
        change(app, create_user(create_tenant()), "Ada")

        def rewind(_):
            body = {"from": "beginning"}
            path = f"/v1/log-streams/{stream.id}/rewind"
            return api.post(path, token=platform_token(), json=body).status_code

        target.judge = rewind
        write_due_once(app)

        assert progress(stream).position == 0
        target.judge = None
        write_due(app)
        assert [names(one.body) for one in target.received] == [["Ada"], ["Ada"]]

    def test_the_streams_of_a_suspended_tenant_wait(self, app, target):
        tenant = create_tenant(is_active=False)
        create(target, tenant)
        change(app, create_user(tenant), "Ada")

        write_due(app)

        assert target.received == []
