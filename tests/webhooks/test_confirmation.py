"""Confirming a subscription of SNS: only there, and again if it fails."""

from __future__ import annotations

import json

import pytest

from app.identity_sync.events import Delivery
from app.webhooks.inbox import store
from app.webhooks.signatures import confirmation
from tests.conformance.webhook_samples import document
from tests.factories import platform_transaction
from tests.webhooks.sending import event_row, work_off

URL = "https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"


class Sns:
    """What SNS would answer, and what it was asked."""

    status = 200
    asked: list[tuple[str, str, str]]

    def __init__(self) -> None:
        self.asked = []

    def connect(self, host: str, timeout: float) -> Sns:
        self.host = host
        return self

    def request(self, method: str, path: str) -> None:
        if self.status == 0:
            raise OSError
        self.asked.append((method, self.host, path))

    def getresponse(self) -> Sns:
        return self

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def sns(monkeypatch) -> Sns:
    """Amazon is the one thing that no test can run."""
    found = Sns()
    monkeypatch.setattr(confirmation.http.client, "HTTPSConnection", found.connect)
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
        assert sns.asked == [
            ("GET", "sns.eu-north-1.amazonaws.com", "/?Action=ConfirmSubscription&Token=t")
        ]

    @pytest.mark.parametrize("status", [0, 403, 500])
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
