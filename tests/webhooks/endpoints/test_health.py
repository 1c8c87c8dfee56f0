"""The stored secrets in flask doctor."""

import pytest
from cryptography.fernet import Fernet

from tests.cli.test_doctor import examine
from tests.factories import create_tenant, create_webhook_endpoint


class TestDoctor:
    @pytest.mark.parametrize(("key", "ok"), [("its own", True), ("none", False), ("other", False)])
    def test_finds_stored_secrets_that_no_key_decrypts(self, app, environment, key, ok):
        create_webhook_endpoint(create_tenant().id)
        keys = {
            "its own": environment["SECRETS_KEY"],
            "none": "",
            "other": Fernet.generate_key().decode(),
        }

        assert examine(environment, SECRETS_KEY=keys[key])[0]["stored secrets"]["ok"] is ok
