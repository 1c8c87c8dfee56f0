"""/v1/webhook-endpoints."""

import dataclasses

import pytest
from cryptography.fernet import Fernet

from app.core.outgoing import Outgoing
from app.webhooks.endpoints.models import WebhookEndpointState
from tests import database
from tests.factories import create_tenant, platform_token
from tests.webhooks.endpoints.support import URL, create_endpoint, token_of

PATH = "/v1/webhook-endpoints"


@pytest.fixture
def settings(app, monkeypatch):
    """Change settings of the running application."""

    def change(**values):
        config = dataclasses.replace(app.extensions["config"], **values)
        monkeypatch.setitem(app.extensions, "config", config)

    return change


@pytest.fixture
def only_public(app, monkeypatch):
    """The guard as it is in production."""
    monkeypatch.setitem(app.extensions, "guarded_outgoing", Outgoing(only_public=True))


class TestCreate:
    def test_shows_the_secret_once(self, api):
        created = create_endpoint(api, description="ours", rate_limit=5)

        answer = api.get(f"{PATH}/{created['id']}", token=platform_token())

        assert created["secret"].startswith("whsec_")
        shown = answer.get_json()["data"]
        assert {**shown, "secret": created["secret"]} == created
        assert shown["tenant_id"] is None
        assert (shown["signing"], shown["is_active"], shown["rate_limit"]) == ("v1", True, 5)

    def test_with_v1a_shows_the_public_key_and_no_secret(self, api):
        created = create_endpoint(api, signing="v1a")

        assert created["public_key"].startswith("whpk_")
        assert created["secret"] is None

    def test_stores_secrets_and_headers_encrypted(self, api):
        created = create_endpoint(api, headers={"Authorization": "Bearer hidden"})

        assert created["header_names"] == ["Authorization"]
        (state,) = database.rows(WebhookEndpointState)
        stored = f"{state.secret} {state.headers}"
        assert created["secret"] not in stored
        assert "hidden" not in stored
        audits = database.query("SELECT after::text AS after FROM audit_events")
        assert all(created["secret"] not in row.after for row in audits)
        assert all("hidden" not in row.after for row in audits)

    def test_without_a_key_is_503_and_stores_nothing(self, api, settings):
        settings(secrets_key=())

        answer = api.post(PATH, token=platform_token(), json={"url": URL, "types": ["*"]})

        assert answer.status_code == 503
        assert answer.get_json()["code"] == "secrets_key_missing"
        assert database.rows(WebhookEndpointState) == []

    @pytest.mark.parametrize("url", ["http://hooks.example.com/", "https://127.0.0.1/", "hooks"])
    def test_refuses_a_url_that_is_not_public(self, api, only_public, url):
        answer = api.post(PATH, token=platform_token(), json={"url": url, "types": ["*"]})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "url"]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *(("types", value) for value in ([], ["unknown"], ["unknown.*"], ["*"] * 51)),
            ("rate_limit", 0),
            ("signing", "v2"),
            ("headers", {"X-A": "line\r\nX-B: y"}),
            ("headers", {"X A": "y"}),
            ("headers", {"X-A": 1}),
            ("headers", {"X-A": "1", "x-a": "2"}),
            ("headers", {f"X-{number}": "1" for number in range(21)}),
        ],
    )
    def test_refuses_a_value(self, api, field, value):
        body = {"url": URL, "types": ["*"], field: value}

        answer = api.post(PATH, token=platform_token(), json=body)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"][:2] == ["body", field]


class TestAccess:
    def test_a_tenant_does_not_see_the_platforms(self, api):
        token = token_of(create_tenant(), "owner")
        path = f"{PATH}/{create_endpoint(api)['id']}"
        body = {"type": "user.created"}

        answers = [
            api.get(path, token=token),
            api.patch(path, token=token, json={"url": URL}),
            api.delete(path, token=token),
            api.post(f"{path}/rotate", token=token),
            api.get(f"{path}/deliveries", token=token),
            api.post(f"{path}/test", token=token, json=body),
        ]

        assert {answer.status_code for answer in answers} == {404}
        assert api.get(PATH, token=token).get_json()["data"] == []


class TestKeys:
    def test_are_replaced_without_losing_a_secret(self, app, api, settings):
        create_endpoint(api, headers={"X-A": "b"})
        (old,) = app.extensions["config"].secrets_key
        new = Fernet.generate_key().decode()
        runner = app.test_cli_runner()

        settings(secrets_key=(new, old))
        result = runner.invoke(args=["webhook-endpoints", "reencrypt", "--json"])

        assert result.exit_code == 0, result.output
        (state,) = database.rows(WebhookEndpointState)
        assert Fernet(new).decrypt(state.secret).startswith(b"whsec_")
        assert Fernet(new).decrypt(state.headers) == b'{"X-A": "b"}'

    def test_that_are_missing_change_nothing(self, app, api, settings):
        create_endpoint(api)
        settings(secrets_key=(Fernet.generate_key().decode(),))

        result = app.test_cli_runner().invoke(args=["webhook-endpoints", "reencrypt"])

        assert result.exit_code == 1
        assert "nothing was changed" in result.output
