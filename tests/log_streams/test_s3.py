"""The kind ``s3``, against a double that verifies signatures."""

import gzip
import json
from dataclasses import replace

import pytest

from app.core.clock import utcnow
from app.core.outgoing import Outgoing
from app.log_streams import work
from app.log_streams.kinds import s3
from app.log_streams.kinds.s3 import REFUSALS, SKEWED
from app.log_streams.models import LogStream
from tests.database import query, row
from tests.factories import create_log_stream, create_tenant, create_user, platform_token
from tests.log_streams.s3_server import ROLE, SERVICE_KEY, s3_server
from tests.log_streams.support import change, make_due, names, progress, write_due

WITH_ROLE = {"role_arn": ROLE, "access_key_id": "", "secret_access_key": ""}


@pytest.fixture
def bucket(app):
    with s3_server() as found:
        yield found


def create(bucket, **values):
    defaults = {"kind": "s3", "types": ["user.updated"], "state": "active"}
    config = {**bucket.config, **values.pop("config", {})}
    return create_log_stream(**defaults | values, config=config)


class TestObjects:
    def test_are_named_after_the_first_position(self, app, bucket):
        stream = create(bucket)
        change(app, create_user(create_tenant()), "Ada", "Grace")

        write_due(app)

        [(name, body)] = bucket.objects.items()
        lines = gzip.decompress(body)
        first = json.loads(lines.splitlines()[0])["position"]
        assert name.startswith(f"dt=1/audit/{utcnow():%Y/%m/%d}/")
        assert name.endswith(f"-{first}.ndjson.gz")
        assert names(lines) == ["Ada", "Grace"]
        assert progress(stream).last_object in name

    def test_a_retry_overwrites_its_object(self, app, bucket):
        user = create_user(create_tenant())
        stream = create(bucket)
        change(app, user, "Ada")
        lost = [True, False]
        bucket.loses_answer = lambda: lost.pop(0)
        write_due(app)
        change(app, user, "Grace")  # not part of the batch that has begun

        make_due(stream)
        bucket.loses_answer = lambda: False
        write_due(app)
        make_due(stream)
        write_due(app)

        assert names(b"\n".join(bucket.lines())) == ["Ada", "Grace"]
        assert (bucket.puts, len(bucket.objects)) == (3, 2)

    def test_has_another_name_after_a_rewind(self, app, api, bucket):
        stream = create(bucket, start="beginning")
        change(app, create_user(create_tenant()), "Ada", "Grace")
        bucket.judge = lambda name: (503, "SlowDown")
        write_due(app)
        failed = progress(stream).batch_name
        [first, _] = query("SELECT position FROM events WHERE type = 'user.updated' ORDER BY 1")

        body, path = {"from": first.position}, f"/v1/log-streams/{stream.id}/rewind"
        api.post(path, token=platform_token(), json=body)
        bucket.judge = lambda name: None
        write_due(app)

        [name] = bucket.objects
        assert failed not in name
        assert names(b"\n".join(bucket.lines())) == ["Grace"]

    def test_an_error_in_an_answer_200_is_tried_again(self, app, bucket):
        stream = create(bucket)
        change(app, create_user(create_tenant()), "Ada")
        bucket.judge = lambda _: (200, "InternalError")
        write_due(app)
        error = progress(stream).last_error

        bucket.judge = lambda _: None
        make_due(stream)
        write_due(app)

        assert error == "The target answers with the error InternalError."
        assert names(b"\n".join(bucket.lines())) == ["Ada"]

    def test_a_tenants_name_tells_no_position(self, app, bucket):
        tenant = create_tenant()
        create(bucket, tenant_id=tenant.id)
        change(app, create_user(tenant), "Ada")

        write_due(app)

        [line] = bucket.lines()
        [name] = bucket.objects
        assert name.endswith(f"-{json.loads(line)['position']}.ndjson.gz")
        assert not json.loads(line)["position"].isdecimal()


class TestRole:
    @pytest.fixture(autouse=True)
    def own_key(self, app, monkeypatch):
        s3._assume_role.cache_clear()
        key_id, secret = SERVICE_KEY
        own = replace(
            app.extensions["config"], aws_access_key_id=key_id, aws_secret_access_key=secret
        )
        monkeypatch.setitem(app.extensions, "config", own)

    def create(self, bucket, **values):
        return create(bucket, config={**WITH_ROLE, **values})

    def test_is_assumed_once_for_many_objects(self, app, bucket):
        stream = self.create(bucket)
        user = create_user(create_tenant())
        for name in ("Ada", "Grace"):
            change(app, user, name)
            make_due(stream)
            write_due(app)

        assert names(b"\n".join(bucket.lines())) == ["Ada", "Grace"]
        assert bucket.assumed == 1

    def test_of_a_tenant_needs_the_tenants_external_id(self, app, bucket):
        tenant = create_tenant()
        stream = create(bucket, tenant_id=tenant.id, config=WITH_ROLE)

        with app.app_context():
            work.test(str(stream.id))

        error = f"The role does not trust this service with the external id {tenant.id}."
        assert progress(stream).test_error == error

    def test_must_demand_an_external_id(self, app, bucket):
        bucket.demands_external_id = False
        tenant = create_tenant()
        stream = create(bucket, tenant_id=tenant.id, config=WITH_ROLE)
        change(app, create_user(tenant), "Ada")

        write_due(app)

        assert row(LogStream).error == f"The role must demand the external id {tenant.id}."
        assert progress(stream).next_attempt_at is None
        assert bucket.objects == {}

    def test_needs_a_valid_key_of_the_service(self, app, bucket, monkeypatch):
        stream = self.create(bucket)
        own = replace(app.extensions["config"], aws_secret_access_key="other")
        monkeypatch.setitem(app.extensions, "config", own)

        with app.app_context():
            work.test(str(stream.id))

        error = "AWS gives no keys of the role (status 403 SignatureDoesNotMatch)."
        assert progress(stream).test_error == error

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("s3.eu-west-1.amazonaws.com", 201),
            ("s3.example.com", 422),
            ("s3.a.amazonaws.com.b", 422),
        ],
    )
    def test_is_used_at_aws_only(self, app, api, owner, bucket, monkeypatch, host, status):
        monkeypatch.setitem(app.extensions, "guarded_outgoing", Outgoing(only_public=True))
        config = {**bucket.config, **WITH_ROLE, "endpoint": f"https://{host}"}

        answer = api.post("/v1/log-streams", token=owner, json={"kind": "s3", "config": config})

        assert answer.status_code == status, answer.text
        if status == 422:
            assert answer.get_json()["detail"][0]["loc"] == ["body", "config", "endpoint"]

    def test_or_a_key_is_required(self, api, owner, bucket):
        config = {**bucket.config, "secret_access_key": ""}

        answer = api.post("/v1/log-streams", token=owner, json={"kind": "s3", "config": config})

        assert answer.status_code == 422
        [entry] = answer.get_json()["detail"]
        assert entry["loc"] == ["body", "config", "secret_access_key"]


class TestTest:
    """``/test`` tells what is wrong by one sentence."""

    @pytest.mark.parametrize(
        ("config", "error"),
        [
            ({}, None),
            ({"region": "us-east-1"}, REFUSALS["AuthorizationHeaderMalformed"]),
            ({"bucket": "other"}, REFUSALS["NoSuchBucket"]),
            ({"access_key_id": "AKIDOTHER"}, REFUSALS["InvalidAccessKeyId"]),
            ({"secret_access_key": "wrong"}, REFUSALS["SignatureDoesNotMatch"]),
        ],
    )
    def test_of_settings(self, app, bucket, config, error):
        stream = create(bucket, config=config, state="paused")

        with app.app_context():
            work.test(str(stream.id))

        assert progress(stream).test_error == error
        assert progress(stream).tested_at is not None
        assert len(bucket.objects) == (error is None)
        assert row(LogStream, id=stream.id).state == "paused"
        for line in bucket.lines():
            assert json.loads(line)["type"] == work.TEST

    def test_of_the_clock(self, app, bucket):
        stream = create(bucket, state="paused")
        bucket.clock = lambda: utcnow().timestamp() + 1_000

        with app.app_context():
            work.test(str(stream.id))

        assert progress(stream).test_error == SKEWED
