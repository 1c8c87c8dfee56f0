"""A client that openapi-python-client makes of the document takes the README's first steps."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.clock import rfc3339, utcnow
from app.dev.demo.seed import seed_demo
from clients.generate import GENERATOR
from tests.running.serving import HOST, web_server

PACKAGE = "tenant_control_plane_client"


@pytest.fixture(scope="module")
def package(app, tmp_path_factory) -> Iterator[str]:
    """The generated package's name; it can be imported."""
    folder: Path = tmp_path_factory.mktemp("generated")
    document = app.test_client().get("/openapi.json").get_data()
    (folder / "openapi.json").write_bytes(document)
    (folder / "settings.yaml").write_text(GENERATOR)
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"]
    command += ["--path", "openapi.json", "--config", "settings.yaml", "--output-path", "client"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder / "client"))
    yield PACKAGE
    sys.path.remove(str(folder / "client"))


@pytest.fixture
def demo(app) -> dict[str, Any]:
    """The demo data of `flask seed`."""
    with app.app_context():
        return json.loads(json.dumps(seed_demo(), default=str))


class Generated:
    """The generated functions, for one credential: ``call(module, …)`` gives the answer's data."""

    def __init__(self, package: str, port: int, token: str) -> None:
        self._package = package
        self.models = importlib.import_module(f"{package}.models")
        client = importlib.import_module(f"{package}.client").AuthenticatedClient
        self._client = client(base_url=f"http://{HOST}:{port}", token=token)

    def call(self, module: str, *path: str, **options: Any) -> SimpleNamespace:
        function = importlib.import_module(f"{self._package}.api.{module}").sync_detailed
        answer = function(*path, client=self._client, **options)
        assert answer.status_code == 200, answer.content
        return answer.parsed.data


class TestFirstSteps:
    def test_takes_the_readmes_seven_steps(self, package, demo, environment, tmp_path):
        tenant = demo["tenants"][0]
        users = {user["role"]: user for user in tenant["users"]}
        with web_server(environment, tmp_path, workers=1) as (port, _):
            platform = Generated(package, port, demo["platform_token"])
            owner = Generated(package, port, users["owner"]["token"])
            models = owner.models

            updated = platform.call(
                "subscriptions.subscriptions_update",
                tenant["subscription_id"],
                body=models.SubscriptionUpdate(bp_status="past_due"),
                x_source_timestamp=rfc3339(utcnow()),
            )
            canceled = owner.call(
                "subscriptions.subscriptions_cancel",
                tenant["subscription_id"],
                body=models.SubscriptionCancel(at_period_end=True, reason="Moving"),
            )
            restored = owner.call(
                "custom_fields.custom_fields_restore",
                tenant["field_id"],
                body=models.CustomFieldRestore(confirm=True),
            )
            suspended, activated = (
                platform.call("tenants.tenants_set_active", tenant["tenant_id"], is_active=active)
                for active in (False, True)
            )
            patches = {"favourite_colour": "teal", "address": {"city": "Oslo"}}
            patched = owner.call(
                "users.users_patch_meta_data",
                users["member"]["id"],
                body=models.UserMetaDataPatch.from_dict({"patches": patches}),
            )
            promoted = owner.call(
                "memberships.memberships_set_role",
                users["member"]["membership_id"],
                role=models.Role("billing"),
            )
            overridden = owner.call(
                "flags.flags_update_override",
                tenant["override_id"],
                body=models.OverrideUpdate(flag_value={"primary": "#c2410c"}),
            )

        assert (updated.bp_status, updated.auto_renew) == ("past_due", True)
        assert (canceled.bp_status, canceled.auto_renew) == ("past_due", False)
        assert (restored.is_active, restored.field_key) == (True, "cost_center")
        assert (suspended.is_active, activated.is_active) == (False, True)
        assert patched.meta_data.additional_properties["address"] == {"city": "Oslo"}
        assert patched.meta_data["favourite_colour"] == "teal"
        assert str(promoted.role) == "billing"
        assert overridden.flag_value == {"primary": "#c2410c"}
