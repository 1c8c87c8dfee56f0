"""What the webhook tests share."""

import pytest
from flask import Flask

from tests.inbox.sending import Sender


@pytest.fixture
def sender(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Sender:
    return Sender(app, monkeypatch)
