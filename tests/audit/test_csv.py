"""GET /v1/audit-events/csv."""

import csv
from io import StringIO

import pytest

from tests.audit.test_audit_events import write_event
from tests.factories import create_tenant, platform_token

PATH = "/v1/audit-events/csv"


def lines_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.content_type == "text/csv; charset=utf-8"
    return list(csv.DictReader(StringIO(answer.text, newline="")))


class TestGet:
    def test_has_the_columns_of_the_list(self, api):
        tenant, token = create_tenant(), platform_token()
        write_event(tenant, target_id="é")
        write_event(None, action="plan_preset.updated")
        (listed, _) = api.get("/v1/audit-events", token=token).get_json()["data"]

        lines = lines_of(api.get(PATH, token=token))

        assert list(lines[0]) == list(listed)
        assert lines[0] == {**listed, "before": '{"a":1}', "after": '{"a":2}'}
        assert lines[1]["tenant_id"] == ""

    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1", '=a"b\n,c'])
    def test_has_no_formula(self, api, text):
        write_event(target_id=text)

        (line,) = lines_of(api.get(PATH, token=platform_token()))

        assert line["target_id"] == f"'{text}"

    def test_narrows_and_goes_page_by_page(self, api):
        token = platform_token()
        for number in range(5):
            write_event(target_id=f"u{number}", actor="system:one")
        write_event(actor="system:other")

        first = api.get(f"{PATH}?actor=system:one&order=-created_at&limit=3", token=token)
        path, _, relation = first.headers["Link"].partition(">; ")
        last = api.get(path.removeprefix("<"), token=token)

        found = [line["target_id"] for answer in (first, last) for line in lines_of(answer)]
        assert found == ["u4", "u3", "u2", "u1", "u0"]
        assert relation == 'rel="next"'
        assert "Link" not in last.headers
