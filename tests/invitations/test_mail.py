"""The service mails invitations by ``SMTP_URL``, with retries, and records what became of them."""

import email
import socket
from contextlib import closing
from email.message import EmailMessage as Message
from email.policy import default

import pytest

from app import create_app
from app.config import ConfigError, load_config
from app.core.clock import utcnow
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.extensions import db
from app.invitations import jobs, mail
from app.invitations.models import Invitation
from tests import database
from tests.factories import create_member, create_tenant, save
from tests.invitations.sink import sinking

PATH = "/v1/invitations"
SETTINGS = {
    "INVITATION_URL": "https://app.example.com/join?token={token}&from=mail",
    "MAIL_FROM": "Acme <no-reply@acme.example>",
    "CONSOLE_NAME": "Acme <Suite>",
}


@pytest.fixture
def sink():
    with sinking() as made:
        yield made


@pytest.fixture
def mailing(app, environment, sink):
    """An application that mails by the sink."""
    made = create_app({**environment, **SETTINGS, "SMTP_URL": sink.url})
    yield made
    with made.app_context():
        db.engine.dispose()


@pytest.fixture
def invite(mailing, admin):
    def send(path=PATH, token=admin, **more):
        sent = {} if path != PATH else {"email": "ada@example.com", "role": "member", **more}
        headers = {"Authorization": f"Bearer {token}"}
        answer = mailing.test_client().post(path, json=sent, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        return answer.get_json()["data"]

    return send


@pytest.fixture
def work(mailing):
    """Make the next attempt that is due; the time until the following one, or None."""

    def deliver():
        with mailing.app_context():
            mail.deliver_next()
        next_at = database.row(Invitation).mail_at
        return next_at and round((next_at - utcnow()).total_seconds(), -1)

    return deliver


def due():
    database.execute("UPDATE invitations SET mail_at = now()")


def kinds():
    return [row.kind for row in database.rows(EmailEventRecord)]


def read(sink) -> Message:
    (raw,) = sink.messages
    return email.message_from_bytes(raw, policy=default)


class TestMail:
    def test_has_the_link_as_text_and_as_html(self, invite, work, sink, tenant):
        invitation = invite()

        assert work() is None

        message = read(sink)
        text, html = (part.get_content() for part in message.iter_parts())
        assert message["To"] == "ada@example.com"
        assert message["From"] == SETTINGS["MAIL_FROM"]
        assert message["Subject"] == f"{tenant.name} invites you to Acme <Suite>"
        assert invitation["url"] in text
        assert invitation["url"].replace("&", "&amp;") in html
        assert "Acme &lt;Suite&gt;" in html
        assert message["Message-ID"] == f"<{invitation['id']}.1@acme.example>"

    def test_is_recorded_as_that_of_a_provider(self, invite, work, mailing):
        invitation = invite()

        work()

        record, message = database.row(EmailEventRecord), database.row(EmailMessage)
        assert (record.source, record.kind) == ("smtp", "sent")
        assert str(record.webhook_event_id) == invitation["id"]
        assert (message.address, message.state) == ("ada@example.com", "sent")
        assert invitation["token"] not in str(record) + str(message)
        assert database.row(Invitation).mail_at is None

    def test_is_sent_once(self, invite, work, sink):
        invite()

        work()
        work()

        assert len(sink.messages) == 1

    def test_of_a_hostile_tenant_has_no_further_header(self, invite, work, sink):
        name = "Evil\r\nBcc: eve@example.com\u2028<script>" + "x" * 5000
        tenant = create_tenant(name=name)

        invite(token=create_member(tenant)[2])
        work()

        message = read(sink)
        assert "Bcc" not in message
        assert message["Subject"].startswith("Evil Bcc: eve@example.com <script>xxx")
        assert len(message["Subject"]) < 150
        assert "<script>" not in message.get_body(("html",)).get_content()

    def test_of_a_resent_invitation_is_another_one(self, invite, work, sink):
        first = invite()
        work()
        sink.messages.clear()

        again = invite(f"{PATH}/{first['id']}/resend")
        work()

        assert again["url"] in read(sink).get_body(("plain",)).get_content()
        assert len(database.rows(EmailMessage)) == 2

    def test_is_not_sent_without_the_setting(self, api, admin):
        sent = {"email": "ada@example.com", "role": "member"}

        api.post(PATH, token=admin, json=sent)

        assert database.row(Invitation).mail_at is None

    def test_of_an_address_are_ten_a_day(self, mailing, invite, sink):
        for address in ("ada@example.com", "bob@example.com"):
            invitation = invite(email=address)
            for _ in range(12):
                with mailing.app_context():
                    mail.deliver_next()
                invitation = invite(f"{PATH}/{invitation['id']}/resend")
            database.execute("UPDATE invitations SET mail_at = NULL")

        assert len(sink.messages) == 20
        reasons = {row.reason for row in database.rows(EmailEventRecord, kind="rejected")}
        assert reasons == {"over 10 mails a day"}

    def test_has_no_other_recipient_than_the_invited_address(self, mailing, admin, invite):
        hidden = "=?utf-8?b?dmljdGltQGV4YW1wbGUub3JnLCA=?=@example.com"  # victim@example.org,

        answer = mailing.test_client().post(
            PATH,
            json={"email": hidden, "role": "member"},
            headers={"Authorization": f"Bearer {admin}"},
        )

        assert answer.status_code == 422

    def test_reaches_an_international_domain(self, invite, work, sink):
        invite(email="ada@bücher.example")
        work()

        assert read(sink)["To"] == "ada@xn--bcher-kva.example"

    def test_is_not_sent_after_the_end(self, invite, work, sink):
        invite()
        database.execute("UPDATE invitations SET revoked_at = now()")

        work()

        assert sink.messages == []

    @pytest.mark.parametrize(("scope", "is_sent"), [("", False), ("newsletter", True)])
    def test_is_not_sent_to_a_suppressed_address(self, invite, work, sink, scope, is_sent):
        values = {"cause": "bounced", "source": "resend", "suppressed_at": utcnow()}
        save(Suppression, address="ada@example.com", scope=scope, is_active=True, **values)

        invite()
        work()

        assert bool(sink.messages) == is_sent
        assert kinds() == (["sent"] if is_sent else ["rejected"])


class TestFaults:
    def test_that_are_temporary_are_tried_again(self, invite, work, sink):
        sink.answers = ["451 later", "452 4.2.2 full"]
        invite()

        waits = []
        for _ in range(3):
            waits.append(work())
            due()

        assert waits == [60, 300, None]
        assert kinds() == ["scheduled", "scheduled", "sent"]
        assert database.rows(EmailEventRecord)[1].reason == "452 4.2.2 full"
        assert database.row(EmailMessage).state == "sent"

    def test_that_are_permanent_are_not(self, invite, work, sink):
        sink.answers = ["550 5.1.1 no such user"]

        invite()

        assert work() is None
        assert kinds() == ["rejected"]
        assert database.row(Invitation).mail_at is None
        assert database.rows(Suppression) == []

    def test_end_after_the_last_attempt(self, invite, work, sink):
        sink.answers = ["451 later"] * 100
        invite()

        for _ in range(len(mail.WAITS) + 1):
            due()
            last = work()

        assert last is None
        assert kinds() == ["scheduled"] * len(mail.WAITS) + ["rejected"]

    def test_of_the_server_are_temporary(self, app, environment, admin):
        with closing(socket.create_server(("127.0.0.1", 0))) as taken:
            port = taken.getsockname()[1]
        for scheme in ("smtp", "smtps", "smtp+plain"):
            url = f"{scheme}://user:secret@127.0.0.1:{port}"
            made = create_app({**environment, **SETTINGS, "SMTP_URL": url})
            with made.app_context():
                kind, said = mail.send(Message())
            assert kind == "scheduled"
            assert "secret" not in said

    def test_of_a_server_without_tls_send_nothing(self, environment, sink):
        """Neither the mail nor the password goes out in clear text."""
        url = sink.url.replace("smtp+plain://", "smtp://user:secret@")
        made = create_app({**environment, **SETTINGS, "SMTP_URL": url})
        message = Message()
        message["To"], message["From"] = "ada@example.com", "x@example.com"

        with made.app_context():
            mail.send(message)

        assert sink.messages == []


class TestJobs:
    def test_the_job_delivers_all_that_are_due(self, mailing, invite, sink):
        for number in range(3):
            invite(email=f"{number}@example.com")

        with mailing.app_context():
            jobs.send_mails()

        assert len(sink.messages) == 3


class TestSettings:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"SMTP_URL": "http://mail.example.com"},
            {"SMTP_URL": "smtp://"},
            {"MAIL_FROM": "nobody"},
            {"MAIL_FROM": "a@b.example\nBcc: c@d.example"},
            {"INVITATION_URL": "https://app.example.com/join"},
            {"INVITATION_URL": "javascript:{token}"},
            {"INVITATION_URL": ""},
            {"MAIL_FROM": ""},
        ],
    )
    def test_that_are_wrong_are_refused(self, environment, wrong):
        right = {**environment, **SETTINGS, "SMTP_URL": "smtp://mail.example.com"}
        load_config(right)

        with pytest.raises(ConfigError):
            load_config({**right, **wrong})
