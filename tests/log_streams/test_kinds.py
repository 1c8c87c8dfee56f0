"""Each kind of target: what it gets, and what is said of wrong settings before anything is written."""

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.core.outgoing import Outgoing
from app.log_streams import work
from app.log_streams.kinds import azure_monitor
from app.log_streams.models import LogFormat, LogStream
from tests.database import row
from tests.events.test_ocsf import faults
from tests.factories import create_log_stream, create_tenant, create_user, platform_token
from tests.inbox.test_certificates import make_certificate
from tests.log_streams.support import change, make_due, progress, write_due, write_due_once
from tests.log_streams.targets import Azure, Datadog, Hec, Slack, Target, running


class Case(NamedTuple):
    """A kind: its target, the settings for it, and a record as it is stored there -> the event."""

    target: type[Target]
    config: Callable[[Any], dict[str, Any]]
    event: Callable[[Any], Any]


CASES = {
    "splunk": Case(
        Hec,
        lambda to: {"url": to.url, "token": to.token, "index": "identity"},
        lambda one: one["event"],
    ),
    "datadog": Case(
        Datadog,
        lambda to: {"url": to.url, "api_key": to.key, "tags": "env:test"},
        lambda one: json.loads(one["message"]),
    ),
    "azure_monitor": Case(
        Azure,
        lambda to: {
            "endpoint": to.url,
            "login": to.url,
            "rule_id": to.rule,
            "stream": to.stream,
            "directory_id": to.directory,
            "client_id": to.client,
            "client_secret": to.secret,
        },
        lambda one: one["Event"],
    ),
    "slack": Case(
        Slack,
        lambda to: {
            "url": f"{to.url}/services/T0/B0/x",
            "template": '{"data": {"first_name": "$data.first_name"}, "position": "$position"}',
        },
        json.loads,
    ),
}
KINDS = sorted(CASES)
NOT_SLACK = sorted({*CASES} - {"slack"})


@pytest.fixture
def targets(app):
    azure_monitor._access_token.cache_clear()
    with ExitStack() as stack:
        yield {name: stack.enter_context(running(case.target())) for name, case in CASES.items()}


def create(targets, kind, *, tenant=None, config=None, **values):
    found = {**CASES[kind].config(targets[kind]), **(config or {})}
    defaults = {"state": "active", "types": ["user.updated"]}
    return create_log_stream(
        tenant and tenant.id, kind=kind, config=found, **{**defaults, **values}
    )


def events(targets, kind):
    lines = targets[kind].records
    if kind == "slack":
        lines = [line for message in lines for line in message.split("\n")]
    return [CASES[kind].event(one) for one in lines]


def names(targets, kind):
    return [one["data"]["first_name"] for one in events(targets, kind)]


@pytest.mark.parametrize("kind", KINDS)
class TestEach:
    def test_gets_events_in_order_with_positions(self, app, targets, kind):
        user = create_user(create_tenant())
        create(targets, kind)
        change(app, user, "Ada", "Grace", "Joan")

        write_due(app)

        assert names(targets, kind) == ["Ada", "Grace", "Joan"]
        positions = [int(one["position"]) for one in events(targets, kind)]
        assert positions == sorted(positions)

    def test_never_gets_another_tenants_record(self, app, targets, kind):
        own, other = create_tenant(), create_tenant()
        mine, theirs = create_user(own), create_user(other)
        create(targets, kind, tenant=own)
        change(app, theirs, "Mallory")
        change(app, mine, "Ada")
        change(app, theirs, "Trudy")

        write_due(app)

        assert names(targets, kind) == ["Ada"]
        sent = b"".join(body for _, _, body in targets[kind].requests).decode()
        assert "Mallory" not in sent
        assert "Trudy" not in sent
        assert str(other.id) not in sent

    @pytest.mark.parametrize("fault", [(429, "slow down", {"Retry-After": "600"}), (503, "busy")])
    def test_gets_the_batch_again_after_a_fault(self, app, targets, kind, fault):
        user = create_user(create_tenant())
        stream = create(targets, kind)
        targets[kind].faults.append(fault)
        change(app, user, "Ada")

        write_due_once(app)
        failed = progress(stream)
        write_due(app)
        before = names(targets, kind)
        make_due(stream)
        write_due(app)

        assert failed.failures == 1
        assert f"status {fault[0]}" in failed.last_error
        wait = (failed.next_attempt_at - failed.written_until).total_seconds()
        assert wait > 590 if fault[0] == 429 else wait < 60
        assert (before, names(targets, kind)) == ([], ["Ada"])
        assert row(LogStream).state == "active"

    def test_is_tested_before_it_is_activated(self, app, targets, kind):
        stream = create(targets, kind, state="paused", config=TEMPLATE.get(kind))

        with app.app_context():
            work.test(str(stream.id))

        assert progress(stream).test_error is None
        assert progress(stream).tested_at is not None
        [record] = targets[kind].records
        assert "log_stream.test" in str(record)

    def test_shows_no_secret(self, api, targets, kind):
        config = CASES[kind].config(targets[kind])
        body = {"kind": kind, "config": config, "state": "paused"}

        answer = api.post("/v1/log-streams", token=platform_token(), json=body)

        assert answer.status_code == 201, answer.text
        secret = {"splunk": "token", "datadog": "api_key", "azure_monitor": "client_secret"}
        hidden = config[secret.get(kind, "url")]
        assert hidden not in answer.text
        assert hidden not in str(row(LogStream))

    def test_names_an_address_where_nobody_answers(self, app, targets, kind):
        name = {"azure_monitor": "login"}.get(kind, "url")
        stream = create(targets, kind, state="paused", config={name: "http://127.0.0.1:9"})

        with app.app_context():
            work.test(str(stream.id))

        assert progress(stream).test_error.startswith("The target gives no usable answer")

    def test_names_a_certificate_that_nobody_trusts(self, app, kind, tmp_path):
        key, chain = ec.generate_private_key(ec.SECP256R1()), tmp_path / "server.pem"
        formats = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain.write_bytes(key.private_bytes(*formats) + make_certificate(key))
        with running(CASES[kind].target(), chain) as target:
            stream = create({kind: target}, kind, state="paused")
            with app.app_context():
                work.test(str(stream.id))

        assert progress(stream).test_error == "The target's TLS certificate is not valid."

    def test_is_asked_at_public_addresses_only(self, app, api, owner, targets, kind, monkeypatch):
        monkeypatch.setitem(app.extensions, "guarded_outgoing", Outgoing(only_public=True))
        config = CASES[kind].config(targets[kind])

        answer = api.post("/v1/log-streams", token=owner, json={"kind": kind, "config": config})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"][:2] == ["body", "config"]
        assert targets[kind].requests == []

    @pytest.mark.parametrize(
        "said",
        [
            *(None, "", "\0" * 9_000, "a\nb", '"text"', "[1]", '{"code": [], "error": []}'),
            *('{"code": {}, "error": "x"}', '{"error": {"message": {}}, "error_description": []}'),
        ],
    )
    def test_bears_any_answer(self, app, targets, kind, said):
        for status in (200, 302, 401, 500):
            stream = create(targets, kind, state="paused")
            targets[kind].faults[:] = [(status, said)] * 2

            with app.app_context():
                work.test(str(stream.id))

            found = progress(stream)
            assert found.tested_at is not None
            if status == 200:
                assert found.test_error is None
            else:
                assert "\n" not in found.test_error
                assert len(found.test_error) < 400


TEMPLATE = {"slack": {"template": "$type"}}


@pytest.mark.parametrize("kind", NOT_SLACK)
class TestOcsf:
    def test_records_are_valid(self, app, targets, kind):
        user = create_user(create_tenant())
        create(targets, kind, format=LogFormat.OCSF)
        change(app, user, "Ada")

        write_due(app)

        [record] = events(targets, kind)
        assert faults(record) == []
        assert record["unmapped"]["data"]["first_name"] == "Ada"


WRONG = [
    ("splunk", {"token": "other"}, "Splunk does not know the token."),
    ("splunk", {"index": "secret"}, "There is no such index, or the token may not write to it."),
    ("datadog", {"api_key": "other"}, "it must be an active one of an account at this site."),
    ("azure_monitor", {"client_secret": "other"}, "AADSTS7000215: Invalid client secret provided."),
    ("azure_monitor", {"client_id": "other"}, "AADSTS700016: Application was not found"),
    ("azure_monitor", {"directory_id": "other"}, "AADSTS90002: Tenant 'other' not found."),
    ("azure_monitor", {"rule_id": "dcr-other"}, "immutable Id 'dcr-other' not found."),
    ("azure_monitor", {"stream": "Custom-Other"}, "Stream Custom-Other is not configured"),
]


class TestWrongSettings:
    @pytest.mark.parametrize(("kind", "config", "sentence"), WRONG)
    def test_are_named_by_the_test_and_stop_the_stream(self, app, targets, kind, config, sentence):
        stream = create(targets, kind, config=config)
        with app.app_context():
            work.test(str(stream.id))
        change(app, create_user(create_tenant()), "Ada")

        write_due(app)

        tested, stored = progress(stream), row(LogStream)
        assert (stored.state, tested.next_attempt_at) == ("invalid", None)
        for found in (tested.test_error, stored.error):
            assert sentence in found
            assert "\n" not in found
            assert "Trace ID" not in found

    @pytest.mark.parametrize(
        ("kind", "values", "sentence"),
        [
            ("splunk", {"is_enabled": False}, "Splunk has disabled the token."),
            ("azure_monitor", {"has_role": False}, azure_monitor.NO_ROLE),
            ("slack", {"is_archived": True}, "channel_is_archived"),
        ],
    )
    def test_at_the_target_are_named(self, app, targets, kind, values, sentence):
        vars(targets[kind]).update(values)
        stream = create(targets, kind, state="paused")

        with app.app_context():
            work.test(str(stream.id))

        assert sentence in progress(stream).test_error

    @pytest.mark.parametrize(
        ("kind", "config"),
        [
            ("splunk", {"token": "two words"}),
            ("splunk", {"token": "a\r\nX-Injected: b"}),
            ("datadog", {"site": "example.com"}),
            ("azure_monitor", {"rule_id": "../x"}),
            ("azure_monitor", {"directory_id": "a/b"}),
            ("slack", {"template": "x" * 501}),
        ],
    )
    def test_are_refused_with_a_422(self, api, targets, kind, config):
        body = {"kind": kind, "config": {**CASES[kind].config(targets[kind]), **config}}

        answer = api.post("/v1/log-streams", token=platform_token(), json=body)

        assert answer.status_code == 422
        [entry] = answer.get_json()["detail"]
        assert entry["loc"] == ["body", "config", *config]


class TestFields:
    @pytest.mark.parametrize(
        ("kind", "fields", "moment"),
        [
            ("splunk", {"index": "identity", "sourcetype": "_json"}, r"17\d{8}|18\d{8}"),
            ("datadog", {"ddsource": "controlplane", "ddtags": "env:test"}, ""),
            ("azure_monitor", {"EventType": "user.updated"}, "20.*Z"),
        ],
    )
    def test_are_beside_the_event(self, app, targets, kind, fields, moment):
        create(targets, kind)
        change(app, create_user(create_tenant()), "Ada")

        write_due(app)

        [record] = targets[kind].records
        assert record == record | fields
        assert re.match(moment, str(record.get("time", record.get("TimeGenerated"))))


class TestSplunk:
    def test_an_address_without_a_collector_is_named(self, app, targets):
        stream = create(targets, "splunk", config={"url": f"{targets['splunk'].url}/x"})

        with app.app_context():
            work.test(str(stream.id))

        assert progress(stream).test_error == "There is no HTTP Event Collector at this address."


class TestAzureMonitor:
    def test_reuses_its_access_token(self, app, targets):
        user = create_user(create_tenant())
        stream = create(targets, "azure_monitor")
        for name in ("Ada", "Grace"):
            change(app, user, name)
            make_due(stream)
            write_due(app)

        paths = [path for path, _, _ in targets["azure_monitor"].requests]
        assert len([path for path in paths if path.endswith("/token")]) == 1
        assert len(paths) == 3


class TestSlack:
    def test_gets_a_digest_of_many_events(self, app, targets):
        user = create_user(create_tenant())
        create(targets, "slack")
        change(app, user, *(f"Ada {number}" for number in range(11)))

        write_due(app)

        assert targets["slack"].records == ["11 events: 11 user.updated"]

    def test_gets_no_markup_of_others(self, app, targets):
        user = create_user(create_tenant())
        create(targets, "slack", config={"template": "$data.first_name$missing by $actor"})
        change(app, user, "<!channel> & co")

        write_due(app)

        [text] = targets["slack"].records
        assert text.startswith("&lt;!channel&gt; &amp; co by ")
