"""The past in the console: pages as of a moment, and what has changed since."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from app.console.pages import history
from app.core.clock import utcnow
from app.history import completeness
from app.memberships.models import Membership
from app.rewinds import jobs
from app.users.models import User
from tests import database
from tests.console.conftest import hidden_inputs
from tests.console.world import ATTACK, create_past, send
from tests.factories import create_member, platform_token, user_token


@pytest.fixture
def call(api):
    """As the platform; the event has its position afterwards."""
    return partial(send, api)


@pytest.fixture
def acme(api):
    return create_past(api)


@pytest.fixture
def page(acme):
    return f"/console/tenants/{acme['id']}"


class TestPast:
    def test_of_a_tenant_is_shown_without_forms(self, browser, acme, page):
        shown = browser.get(page, query_string={"as_of": acme["moment"]}).text
        main = shown.partition("<main")[2].partition("</main>")[0]

        assert re.search(r"<h1>\s*Acme\s*</h1>", main)
        assert "This is the past" in main
        assert f'href="{page}">Back to now</a>' in main
        for name in ("Ada", "ada@acme.example", "Owner", "theme", "plain"):
            assert name.lower() in main.lower(), name
        assert 'method="post"' not in main
        for change in ("edit", "suspend", "plan", "notes", "metadata"):
            assert f'href="{page}/{change}"' not in main, change

    def test_of_a_user_is_shown_without_forms(self, browser, acme, page):
        path = f"{page}/users/{acme['user_id']}"
        shown = browser.get(path, query_string={"as_of": acme["moment"]}).text
        main = shown.partition("<main")[2].partition("</main>")[0]

        assert re.search(r"<h1>\s*Ada\s*</h1>", main)
        assert f'href="{path}">Back to now</a>' in main
        assert 'method="post"' not in main
        for change in ("edit", "export", "deactivate", "erase", "metadata"):
            assert f'href="{path}/{change}"' not in main, change

    def test_of_somebodys_access_is_explained_with_what_the_answer_lacks(
        self, browser, acme, page, call
    ):
        path = f"{page}/users/{acme['user_id']}/access"
        call("POST", f"/v1/tenants/{acme['id']}/suspend", {"reason": "unpaid"})
        asked = {"permission": "users:write"}

        now = browser.get(path, query_string=asked).text
        shown = browser.get(path, query_string={**asked, "as_of": acme["moment"]}).text
        main = shown.partition("<main")[2].partition("</main>")[0]
        plain = browser.get(path, query_string={"as_of": acme["moment"]}).text

        assert "<strong>Refused</strong>" in now
        assert "<strong>Allowed</strong>" in main
        assert re.search(r"<h1>\s*Ada\s*</h1>", main)
        assert f'href="{path}?permission=users%3Awrite">Back to now</a>' in main
        assert '<input type="hidden" name="permission" value="users:write">' in main
        assert f'name="as_of" value="{acme["moment"]}"' in main.replace("&#43;", "+")
        assert history.LACKS["usage"] in main
        assert history.LACKS["usage"] not in plain
        assert "users/{}?as_of=".format(acme["user_id"]) in main  # the profile, of then too
        assert 'method="post"' not in main
        assert "/roles/assign" not in main

    def test_of_a_role_that_was_assigned_then(self, api, browser, acme, page, call):
        role = {"role": "billing", "membership_id": str(database.row(Membership).id)}
        made = call("POST", "/v1/role-assignments", role, tenant_id=acme["id"])
        moment = utcnow().isoformat()
        api.delete(f"/v1/role-assignments/{made['id']}", token=platform_token())
        api.sequence()
        path = f"{page}/users/{acme['user_id']}/access"

        then = browser.get(path, query_string={"as_of": moment}).text

        assert '<td class="main">billing</td>' in then
        assert "Remove" not in then
        assert '<td class="main">billing</td>' not in browser.get(path).text

    def test_says_what_old_changes_lack(self, superuser, browser, acme, page):
        superuser.execute("UPDATE audit_positions SET number = -1")
        shown = browser.get(page, query_string={"as_of": acme["moment"]}).text

        assert history.LACKS["order"] in shown

    def test_has_a_sentence_for_each_thing_that_answers_lack(self):
        assert set(history.LACKS) == {part.name for part in completeness.PARTS if part.name}

    def test_is_that_of_a_position_of_the_tenants_feed(self, api, browser, acme, page, call):
        token = user_token(database.row(User))
        position = api.get("/v1/events?limit=1000", token=token).get_json()["next_cursor"]
        call("PATCH", f"/v1/tenants/{acme['id']}", {"name": "Third"})

        shown = browser.get(page, query_string=[("as_of", ""), ("as_of", position)]).text

        assert f"This is the past: position {position}." in shown
        assert re.search(r"<h1>\s*Other\s*</h1>", shown)

    def test_without_a_zone_is_in_utc(self, browser, acme, page):
        time = (
            datetime.fromisoformat(acme["moment"]).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        )

        assert "This is the past" in browser.get(f"{page}?as_of={time}").text

    def test_that_there_is_not_leads_to_now_and_says_why(self, browser, acme, page):
        for moment in ("2020-01-01T00:00", "2999-01-01T00:00", "x", "9" * 40, ATTACK):
            answer = browser.get(page, query_string={"as_of": moment})
            shown = browser.get(page).text

            assert (answer.status_code, answer.location) == (303, page)
            assert "cannot be shown." in shown.partition('class="warning"')[2]
            assert "<script>alert" not in shown

    def test_of_another_tenant_is_not_found(self, signed_in, acme, page, tenant):
        browser = signed_in(create_member(tenant, "owner")[0])
        path = f"/console/tenants/{tenant.id}/users/{acme['user_id']}"

        assert browser.get(f"{page}?as_of={acme['moment']}").status_code != 200
        assert browser.get(f"{path}?as_of={acme['moment']}").status_code != 200


class TestChanges:
    def test_are_shown_once_for_each_row(self, browser, acme, page):
        query = {"from": acme["moment"].replace("+00:00", "Z")}

        shown = browser.get(f"{page}/audit/changes", query_string=query).text
        rows = shown.partition('id="rows"')[2]

        assert rows.count("<details>") == 2
        assert "changed first name" in rows
        assert ">Acme<" in rows.replace('<span class="text">', "").replace("</span>", "<")
        assert f"audit?target_id={acme['user_id']}" in rows

    def test_are_filtered_and_downloaded(self, browser, acme, page):
        query = {"from": acme["moment"], "target_type": "user"}

        shown = browser.get(f"{page}/audit/changes", query_string=query).text
        lines = browser.get(f"{page}/audit/changes", query_string={**query, "format": "csv"}).text

        assert shown.partition('id="rows"')[2].count("<details>") == 1
        assert len(lines.splitlines()) == 2

    def test_begin_at_a_preset_in_the_readers_zone(self, browser, page):
        query = {"zone": "Asia/Tokyo", "since": "Since yesterday"}

        answer = browser.get(f"{page}/audit/changes", query_string=query)

        assert answer.status_code == 303
        assert re.search(r"from=\d{4}-\d\d-\d\dT15%3A00%3A00$", answer.location)

    def test_since_friday_are_at_most_a_week(self):
        for day in range(7):
            now = utcnow() + timedelta(days=day)
            begin = history.SINCE["Since Friday"](now)

            assert begin.weekday() == history.FRIDAY
            assert timedelta(0) < now - begin < timedelta(days=8)

    def test_of_a_wrong_moment_say_so(self, browser, page):
        for moment in ("x", "2999-01-01T00:00", ATTACK):
            answer = browser.get(f"{page}/audit/changes", query_string={"from": moment})

            assert answer.status_code == 200
            assert 'role="alert"' in answer.text
            assert "<script>alert" not in answer.text


class TestRewind:
    @pytest.fixture
    def acme(self, api):
        return create_past(api, is_whole=True)

    @pytest.fixture
    def rewind(self, page):
        return f"{page}/audit/rewind"

    def test_is_previewed_confirmed_and_followed(self, app, api, browser, acme, page, rewind):
        form = {"to": acme["moment"][:19], "kinds": ["tenant", "users"]}
        previewed = browser.send(rewind, **form, form_preview="1").text
        hidden = hidden_inputs(previewed.partition('class="preview"')[2])
        refused = browser.post(rewind, data={**hidden, "form_confirmation": "other"})
        answer = browser.post(
            rewind, data={**hidden, "form_confirmation": hidden["form_expected"][0]}
        )
        begun = browser.get(answer.location).text
        api.sequence()
        with app.app_context():
            jobs.rewind(answer.location.rpartition("/")[2])
        ended = browser.get(answer.location).text

        assert "2 changes would be made." in previewed
        assert "updated: tenant, Acme" in previewed
        assert (refused.status_code, answer.status_code) == (422, 303)
        assert "Underway." in begun
        assert "Completed" in ended or "completed" in ended
        assert "/audit/rewind?to=" in ended
        assert answer.location.rpartition("/")[2] in browser.get(f"{page}/audit/rewinds").text
        assert re.search(r"<h1>\s*Acme\s*</h1>", browser.get(page).text)

    def test_without_a_kind_or_with_a_wrong_moment_says_so(self, browser, acme, rewind):
        time = acme["moment"][:19]
        none = browser.send(rewind, to=time, form_preview="1")
        late = browser.send(rewind, to="2999-01-01T00:00:00", kinds="users", form_preview="1")
        unknown = browser.send(rewind, to=time, kinds="users", only="x", form_preview="1")

        assert [each.status_code for each in (none, late, unknown)] == [422, 422, 422]
        for answer, name in ((none, "kinds"), (late, "to"), (unknown, "only")):
            assert f'id="field-{name}-error"' in answer.text, name

    def test_is_the_platforms(self, signed_in, acme, page, rewind):
        browser = signed_in(database.row(User))

        assert browser.send(rewind, to=acme["moment"][:19], form_preview="1").status_code == 403
        assert "/audit/rewind" not in browser.get(f"{page}?as_of={acme['moment'][:19]}").text
        assert "/audit/rewind" not in browser.get(f"{page}/audit/changes").text
