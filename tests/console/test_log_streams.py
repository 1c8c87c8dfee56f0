"""The console's pages of log streams."""

import pytest
from markupsafe import escape

from app.log_streams import work
from app.log_streams.kinds import KINDS
from tests import database
from tests.factories import create_log_stream, create_member, create_tenant
from tests.log_streams.targets import Hec, running


@pytest.fixture
def page(tenant):
    return f"/console/tenants/{tenant.id}/log-streams"


@pytest.fixture
def browser(signed_in):
    return signed_in()


class TestCreate:
    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_has_an_input_for_each_setting(self, browser, page, kind):
        chosen = browser.get(f"{page}/new?kind={kind}")
        form = browser.get(chosen.location).text

        for name, field in KINDS[kind].schema().fields.items():
            assert f'name="{name}"' in form
            assert escape(field.metadata.get("description", "")) in form
        for name in KINDS[kind].secrets - {"headers"}:
            assert f'type="password" name="{name}"' in form

    def test_of_a_tenant_is_paused_tested_resumed_rewound_and_deleted(
        self, app, browser, page, tenant
    ):
        with running(Hec()) as hec:
            values = {"url": hec.url, "token": hec.token, "types": "user.*", "format": "ocsf"}
            created = browser.send(f"{page}/new/splunk", **values)
            stream = created.location
            (stored,) = database.query("SELECT id, state, format, config FROM log_streams")
            tested = browser.send(f"{stream}/test")
            underway = browser.get(tested.location).text
            with app.app_context():
                work.test(str(stored.id))
            over = browser.get(tested.location).text

        assert (stored.state, stored.format) == ("paused", "ocsf")
        assert stored.config == {"url": hec.url, "index": ""}
        assert "Underway" in underway
        assert "Underway" not in over
        assert "succeeded" in over
        assert hec.token not in over
        states = []
        for action in ("resume", "pause"):
            assert browser.send(f"{stream}/{action}").status_code == 303
            states += database.query("SELECT state FROM log_streams")
        assert states == [("active",), ("paused",)]
        browser.send(f"{stream}/rewind", **{"from": "beginning"})
        assert browser.send(f"{stream}/delete", form_confirmation=tenant.slug).status_code == 303
        assert database.query("SELECT FROM log_streams") == []

    def test_shows_errors_beside_their_fields(self, browser, page):
        values = {"site": "datadoghq.com", "types": "*", "format": "native"}

        missing = browser.send(f"{page}/new/datadog", **values)
        wrong = browser.send(f"{page}/new/datadog", **{**values, "types": "x.y"})

        assert (missing.status_code, wrong.status_code) == (422, 422)
        assert 'id="field-api_key-error"' in missing.text
        assert 'id="field-types-error"' in wrong.text


class TestShow:
    def test_says_the_last_error_and_object(self, browser, page, tenant):
        stream = create_log_stream(tenant.id, description="Our SIEM")
        database.execute(
            "UPDATE log_stream_progress SET last_error = 'The target answers with status 503.',"
            " last_object = '2026/01/31/120000-x', written_at = now()"
        )
        database.execute("UPDATE log_streams SET state = 'error', error = 'It is busy.'")

        listed, text = browser.get(page).text, browser.get(f"{page}/{stream.id}").text
        failing, paused = (browser.get(f"{page}?state={one}").text for one in ("error", "paused"))

        assert "Our SIEM" in listed
        assert "Our SIEM" in failing
        assert "Our SIEM" not in paused
        assert f'href="{page}/new"' in listed
        assert f'action="{page}/{stream.id}/pause"' in text
        for part in ("It is busy.", "status 503", "2026/01/31/120000-x", "Pause"):
            assert part in text

    def test_shows_an_owner_only_the_own_ones(self, signed_in, tenant):
        own, other = create_log_stream(tenant.id), create_log_stream(create_tenant().id)
        of_platform = create_log_stream(description="Everything")
        browser = signed_in(create_member(tenant, "owner")[0])

        listed = browser.get("/console/log-streams").text

        assert str(own.id) in listed
        assert str(other.id) not in listed
        assert "Everything" not in listed
        for stream in (other, of_platform):
            address = f"/console/log-streams/{stream.id}"
            assert browser.get(address).status_code == 404
            for action in ("test", "pause", "resume", "delete"):
                assert browser.post(f"{address}/{action}").status_code == 404
        assert database.query("SELECT count(*) FROM log_streams WHERE state = 'paused'") == [(3,)]
