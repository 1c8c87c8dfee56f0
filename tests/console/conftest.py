"""Browsers that are signed in to the console, without a real browser."""

from functools import partialmethod
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.auth import sessions
from tests.database import platform_transaction
from tests.factories import PLATFORM_SUBJECT, platform_token

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


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
        """Post a form with the version that its page shows."""
        page = self.get(path)
        assert page.status_code == 200, page.text
        version = page.text.partition('name="form_version" value="')[2].partition('"')[0]
        return self.post(path, data={"form_version": version.replace("&#34;", '"'), **values})


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
