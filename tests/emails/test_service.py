"""What e-mail events leave: facts, states that only rise, suppressions that the latest word decides."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.audit.models import AuditEvent
from app.core.actors import SYSTEM_CLI
from app.emails import service, suppressions
from app.emails.events import STATES, Cause, EmailEvent, EmailKind, Suppression, suppressions_of
from app.emails.models import EmailEventRecord, EmailMessage
from app.emails.models import Suppression as SuppressionRow
from tests.factories import platform_transaction
from tests.inbox.sending import all_rows

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


def email_event(kind: EmailKind, minutes: int = 0, **values: Any) -> EmailEvent:
    """An event of message m1 to one address, so many minutes after nine."""
    defaults = {
        "message_id": "m1",
        "recipient": "Ada@Acme.example",
        "occurred_at": NINE + timedelta(minutes=minutes),
        "suppressions": suppressions_of(kind),
    }
    return EmailEvent(kind=kind, **defaults | values)


def record(*events: EmailEvent) -> None:
    """Store the events, each of a delivery of its own."""
    for event in events:
        with platform_transaction():
            service.record([event], source="resend", webhook_event_id=uuid4())


def message() -> EmailMessage:
    (row,) = all_rows(EmailMessage)
    return row


def listed() -> list[tuple[str, str]]:
    return [(row.cause, row.scope) for row in all_rows(SuppressionRow, is_active=True)]


pytestmark = pytest.mark.usefixtures("app")


class TestRecord:
    def test_keeps_the_fact_as_it_was_told(self):
        record(
            email_event(
                EmailKind.CLICKED, url="https://x.example", tags=("a",), metadata={"k": "v"}
            )
        )

        (row,) = all_rows(EmailEventRecord)
        assert (row.recipient, row.address) == ("Ada@Acme.example", "ada@acme.example")
        assert (row.kind, row.url, row.tags) == ("clicked", "https://x.example", ["a"])
        assert (row.metadata, row.occurred_at) == ({"k": "v"}, NINE)

    def test_stores_a_part_of_a_delivery_once(self):
        delivery = uuid4()
        for _ in range(2):
            with platform_transaction():
                stored = service.record(
                    [email_event(EmailKind.OPENED)], source="resend", webhook_event_id=delivery
                )

        assert stored == 0
        assert message().opens == 1

    def test_takes_a_message_id_of_any_length(self):
        record(email_event(EmailKind.SENT, message_id="m" * 5000))

        assert all_rows(EmailEventRecord)[0].message_id == "m" * 5000
        assert message().message_id == "m" * 255


class TestState:
    @pytest.mark.parametrize("order", [*itertools.permutations(("sent", "delivered", "bounced"))])
    def test_is_the_highest_in_any_order(self, order):
        record(*[email_event(EmailKind(name)) for name in order])

        assert message().state == "bounced"

    def test_rises_through_the_whole_lattice_and_never_falls(self):
        for state in STATES:
            record(email_event(state))
            assert message().state == state.value
        record(*[email_event(state) for state in STATES])

        assert message().state == "complained"

    def test_is_dated_by_the_earliest_word_of_it(self):
        record(email_event(EmailKind.DELIVERED, 5), email_event(EmailKind.DELIVERED, 2))
        record(email_event(EmailKind.SENT, 0))

        assert message().state_at == NINE + timedelta(minutes=2)

    def test_stands_beside_opens_and_clicks(self):
        record(email_event(EmailKind.OPENED, 9), email_event(EmailKind.CLICKED, 8))
        unknown = message().state
        record(email_event(EmailKind.OPENED, 7), email_event(EmailKind.DELIVERED, 1))

        assert unknown == "unknown"
        assert (message().state, message().opens, message().clicks) == ("delivered", 2, 1)
        assert message().first_opened_at == NINE + timedelta(minutes=7)

    def test_is_of_one_recipient(self):
        record(
            email_event(EmailKind.DELIVERED),
            email_event(EmailKind.BOUNCED, recipient="bob@acme.example"),
        )

        states = {row.address: row.state for row in all_rows(EmailMessage)}
        assert states == {"ada@acme.example": "delivered", "bob@acme.example": "bounced"}


class TestSuppressions:
    @pytest.mark.parametrize("kind", EmailKind)
    def test_are_made_by_bounces_complaints_and_opt_outs_only(self, kind):
        makes = kind in (EmailKind.BOUNCED, EmailKind.COMPLAINED, EmailKind.UNSUBSCRIBED)
        causes = [kind.value] if makes else []

        record(email_event(kind))

        assert listed() == [(cause, "") for cause in causes]
        found = [(row.action, row.actor) for row in all_rows(AuditEvent)]
        assert found == [("suppression.added", "system:email") for _ in causes]

    def test_end_with_a_later_return_of_the_same_kind(self):
        record(email_event(EmailKind.UNSUBSCRIBED, 1), email_event(EmailKind.BOUNCED, 1))
        record(email_event(EmailKind.RESUBSCRIBED, 2))

        assert listed() == [("bounced", "")]

    def test_are_decided_by_the_latest_word_in_any_order(self):
        words = [EmailKind.UNSUBSCRIBED, EmailKind.RESUBSCRIBED] * 2
        for seed in range(6):
            events = [
                email_event(kind, minutes, recipient=f"r{seed}@acme.example")
                for minutes, kind in enumerate(words)
            ]
            random.Random(seed).shuffle(events)
            record(*events)

        assert listed() == []

    def test_of_a_group_are_their_own(self):
        left = Suppression(Cause.UNSUBSCRIBED, "group:1")
        back = Suppression(Cause.UNSUBSCRIBED, "group:2", lifted=True)
        record(email_event(EmailKind.UNSUBSCRIBED, 1, suppressions=(left,)))
        record(email_event(EmailKind.RESUBSCRIBED, 2, suppressions=(back,)))

        assert listed() == [("unsubscribed", "group:1")]

    def test_lifted_by_an_operator_are_renewed_only_by_what_happens_after(self):
        record(email_event(EmailKind.BOUNCED, 1), email_event(EmailKind.COMPLAINED, 1))

        with platform_transaction():
            suppressions.lift("ada@ACME.example", actor=SYSTEM_CLI)
        record(email_event(EmailKind.BOUNCED, 2))
        before = listed()
        after = datetime.now(UTC) + timedelta(minutes=1)
        record(email_event(EmailKind.BOUNCED, occurred_at=after))

        assert (before, listed()) == ([], [("bounced", "")])
        lifted = [row.actor for row in all_rows(AuditEvent, action="suppression.lifted")]
        assert lifted == [SYSTEM_CLI.id, SYSTEM_CLI.id]
