"""`flask webhooks`."""

import json
from contextlib import suppress
from typing import Any

import pytest

from app.identity_sync.models import IdentityObject
from app.inbox.providers import RECEIVERS
from app.inbox.providers.payloads import Posted, Unwanted
from app.inbox.signatures.samples import sample
from app.inbox.verification import SCHEMES
from app.tenants.models import DeletedOrganization, Tenant
from tests.database import rows
from tests.factories import create_tenant
from tests.inbox.sending import SECRETS, all_events, all_rows, work_off


@pytest.fixture
def run(app):
    """Run a command; its JSON, if its exit code is as expected."""

    def invoke(*words: str, code: int = 0) -> Any:
        ended = app.test_cli_runner().invoke(args=["webhooks", *words, "--json"])
        assert ended.exit_code == code, ended.output
        return json.loads(ended.stdout) if ended.stdout else None

    return invoke


class TestLooking:
    def test_counts_by_source_and_status(self, run, sender):
        sender.deliver_sample("workos", "organization.created")
        sender.deliver_sample("workos", "organization_domain.verified")

        counted = {(row["source"], row["status"]): row["events"] for row in run("stats")}

        assert counted == {("workos", "ignored"): 1, ("workos", "succeeded"): 1}


class TestSendTest:
    PRESETS = (
        ("standard_webhooks", "generic"),
        ("workos", "workos"),
        ("clerk", "clerk"),
        ("logto", "logto"),
        ("auth0", "auth0"),
        ("stytch", "stytch"),
        ("resend", "resend"),
        ("mailgun", "mailgun"),
        ("postmark", "postmark"),
        ("stripe", "stripe"),
        ("paddle", "paddle"),
        ("polar", "polar"),
    )

    @pytest.mark.parametrize(("preset", "source"), PRESETS)
    def test_posts_an_event_that_is_accepted_and_applied(
        self, app, run, sender, base_url, preset, source
    ):
        if source in RECEIVERS:
            sender.configure({RECEIVERS[source]: f"{preset}:{SECRETS[preset]}"})

        sent = run("send-test", preset, "--url", base_url, "--secret", SECRETS[preset])

        work_off(app)
        (event,) = all_events()
        assert sent["status"] == 200
        assert sent["answer"]["event_id"] == str(event.id)
        assert (event.source, event.status) == (source, "succeeded")

    @pytest.mark.parametrize(
        ("preset", "status", "detail"),
        [
            ("lemonsqueezy", "ignored", ""),
            ("chargebee", "failed", "Chargebee signs nothing: set CHARGEBEE_API_KEY to read it"),
        ],
    )
    def test_posts_an_event_that_is_accepted_and_tells_why_it_is_not_applied(
        self, app, run, sender, base_url, preset, status, detail
    ):
        sender.configure({RECEIVERS[preset]: f"{preset}:{SECRETS[preset]}"})

        sent = run("send-test", preset, "--url", base_url, "--secret", SECRETS[preset])

        work_off(app)
        (event,) = all_events()
        assert (sent["status"], event.source, event.status) == (200, preset, status)
        assert detail in event.detail

    def test_signs_with_the_configured_secret(self, app, run, base_url):
        sent = run("send-test", "standard_webhooks", "--url", base_url, "--receiver", "email")

        assert sent["status"] == 200
        assert all_events()[0].source == "generic_email"

    def test_sends_a_file(self, run, base_url, tmp_path):
        path = tmp_path / "event.json"
        path.write_text('{"type": "x"}')

        run("send-test", "standard_webhooks", "--url", base_url, "--file", str(path))

        assert all_events()[0].body == b'{"type": "x"}'

    def test_cleans_up_the_sample_tenants_only(self, app, run, sender, base_url):
        kept = create_tenant(idp_org_id="sample_of_ours")
        for preset in ("workos", "auth0"):
            run("send-test", preset, "--url", base_url, "--secret", SECRETS[preset])
        work_off(app)

        cleaned = run("send-test", "--clean")

        assert cleaned == [{"deleted": 2}]
        assert [row.id for row in all_rows(Tenant)] == [kept.id]
        assert all_rows(IdentityObject) == rows(DeletedOrganization) == []
        assert {event.body for event in all_events()} == {None}
        assert run("send-test", "--clean") == [{"deleted": 0}]

    def test_wants_a_preset(self, app):
        assert app.test_cli_runner().invoke(args=["webhooks", "send-test"]).exit_code == 2

    def test_fails_where_the_service_refuses(self, run, base_url, sender):
        sent = run("send-test", "workos", "--url", base_url, "--secret", "another", code=1)

        assert sent["status"] == 401

    def test_fails_without_a_secret(self, app):
        ended = app.test_cli_runner().invoke(args=["webhooks", "send-test", "mailgun"])

        assert ended.exit_code == 1
        assert "EMAIL_WEBHOOK_SECRETS" in ended.stderr

    def test_fails_where_nobody_answers(self, app):
        ended = app.test_cli_runner().invoke(
            args=["webhooks", "send-test", "workos", "--url", "http://127.0.0.1:9"]
        )

        assert ended.exit_code == 1
        assert "no answer: Connection refused. See --url." in ended.stderr


class TestSamples:
    def test_have_the_form_of_their_provider(self, app):
        assert app.extensions[SCHEMES].keys() == RECEIVERS.keys()
        for receiver in RECEIVERS.values():
            for provider in receiver.providers:
                if provider.name == "ses":
                    continue  # only Amazon can sign it
                posted = Posted(sample(provider.name, 1_800_000_000.5))
                for row in provider.split(posted, "msg_1"):
                    with suppress(Unwanted):
                        assert provider.adapt(row.body), provider.name
