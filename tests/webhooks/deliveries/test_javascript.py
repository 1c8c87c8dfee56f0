"""Deliveries verified by the JavaScript libraries ``standardwebhooks`` and ``svix``.

``tests/package-lock.json`` pins the packages. They are installed once, into pytest's cache.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.factories import create_tenant, platform_token
from tests.npm import install_packages
from tests.webhooks.deliveries.receiving import receiver, sender
from tests.webhooks.deliveries.test_sending import PATH, change
from tests.webhooks.endpoints.support import create_endpoint

SCRIPT = Path(__file__).with_name("verify.mjs")


@pytest.fixture(scope="module")
def verify(request):
    """What both libraries say of a request."""
    node, folder = install_packages(SCRIPT.parents[2], request.config.cache)
    script = shutil.copy(SCRIPT, folder)

    def verify(secret, received, body=None):
        job = {
            "secret": secret,
            "body": (body or received.body).decode(),
            "headers": received.headers,
        }
        done = subprocess.run(
            [node, script, json.dumps(job)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return verify


class TestJavaScript:
    def test_verifies_a_delivery_also_during_a_rotation(self, app, api, verify):
        with receiver() as hook:
            endpoint = create_endpoint(api, url=hook.url, types=["user.*"])
            rotated = api.post(f"{PATH}/{endpoint['id']}/rotate", token=platform_token())
            change(api, create_tenant())
            with sender(app):
                hook.wait_for(1)
        (received,) = hook.received

        for secret in (endpoint["secret"], rotated.get_json()["data"]["secret"]):
            assert verify(secret, received) == [True, True]
            assert verify(secret, received, received.body + b" ") == [False, False]
