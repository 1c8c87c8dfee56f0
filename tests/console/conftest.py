"""Browsers that are signed in to the console, without a real browser."""

import html
import re
from functools import partialmethod
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.auth import sessions
from tests.database import platform_transaction
from tests.factories import PLATFORM_SUBJECT, platform_token

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
HIDDEN = re.compile(r"""<input type="hidden" name="([^"]+)" value=(?:"([^"]*)"|'([^']*)')>""")


def hidden_inputs(text: str) -> dict[str, list[str]]:
    """The hidden inputs of the first form in a text."""
    found: dict[str, list[str]] = {}
    for name, quoted, single in HIDDEN.findall(text.partition("</form>")[0]):
        found.setdefault(name, []).append(html.unescape(quoted or single))
    return found


class Browser:
    """A browser with the cookie of a session, or without one."""

    def __init__(self, app: Any, secret: str | None = None) -> None:
        self.client = app.test_client()
        self.secret = secret
        if secret is not None:
            self.client.set_cookie("console", secret, path="/")

    def open(self, method: str, path: str, *, headers: Any = None, **options: Any) -> TestResponse:
        """Send a request as a page of the console does."""
        sent = SAME_ORIGIN if headers is None else headers
        return self.client.open(path, method=method, headers=sent, **options)

    get = partialmethod(open, "GET")
    post = partialmethod(open, "POST")

    def send(self, path: str, **values: Any) -> TestResponse:
        """Post a form with what its page hides in it: its version, and the values that it shows."""
        page = self.get(path)
        assert page.status_code == 200, page.text
        hidden = hidden_inputs(page.text.partition('class="head"')[2])
        return self.post(path, data={**hidden, **values})

    def undo(self, path: str) -> TestResponse:
        """Undo what the notice on a page tells; there has to be a way."""
        notice = self.get(path).text.partition('class="notice"')[2]
        address = re.search(r'<form method="post" action="([^"]+)"', notice)
        assert address is not None
        return self.post(html.unescape(address[1]), data=hidden_inputs(notice))


@pytest.fixture
def anonymous(app):
    return Browser(app)


@pytest.fixture
def signed_in(app):
    """``signed_in(user)``, or ``signed_in()`` for a platform superadmin."""

    def sign_in(user: Any = None) -> Browser:
        if user is None:
            platform_token()  # creates the superadmin
        with platform_transaction():
            if user is None:
                return Browser(app, sessions.start(PLATFORM_SUBJECT, None))
            return Browser(app, sessions.start(user.idp_user_id, user.idp_org_id))

    return sign_in


@pytest.fixture
def browser(signed_in):
    """A browser in which a platform superadmin is signed in."""
    return signed_in()
