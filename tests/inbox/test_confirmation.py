"""Confirming a subscription of SNS: only there, and again if it fails."""

import json

import pytest

from app.core.outgoing import FetchFailed
from app.inbox.providers.provider import Delivery
from app.inbox.receiving import store
from app.inbox.signatures import sns as signatures_sns
from tests.conformance.webhook_samples import document
from tests.factories import platform_transaction
from tests.inbox.sending import event_row, work_off

URL = "https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"


class Sns:
    """What SNS would answer, and what it was asked."""

    status: int | None = 200

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, url: str, **_: float) -> bytes:
        self.asked.append(url)
        if self.status != 200:
            raise FetchFailed("refused", self.status)
        return b""


@pytest.fixture
def sns(monkeypatch) -> Sns:
    """Amazon is the one thing that no test can run."""
    found = Sns()
    monkeypatch.setattr(signatures_sns, "guarded", lambda: found)
    return found


def deliver(app, url: str):
    """A confirmation whose signature has been verified."""
    body = document("ses", "sns.SubscriptionConfirmation") | {"SubscribeURL": url}
    delivery = Delivery("m1", "SubscriptionConfirmation", json.dumps(body).encode())
    with platform_transaction():
        (event_id,) = store("ses", [delivery], headers={}, replay_key=None).event_ids
    work_off(app)
    return event_row(event_id)


class TestSubscriptionConfirmation:
    def test_visits_the_address(self, app, sns):
        row = deliver(app, URL)

        assert row.status == "succeeded"
        assert sns.asked == [URL]

    @pytest.mark.parametrize("status", [None, 403, 500])
    def test_is_tried_again_when_it_fails(self, app, sns, status):
        sns.status = status

        row = deliver(app, URL)

        assert (row.status, row.attempts) == ("pending", 1)
        assert "ConfirmationFailed" in row.detail

    @pytest.mark.parametrize(
        "url",
        [
            "http://sns.eu-north-1.amazonaws.com/?x",
            "https://sns.eu-north-1.amazonaws.com.evil.example/?x",
            "https://localhost/?x",
            "",
        ],
    )
    def test_visits_no_other_host(self, app, sns, url):
        row = deliver(app, url)

        assert row.status == "failed"
        assert sns.asked == []
