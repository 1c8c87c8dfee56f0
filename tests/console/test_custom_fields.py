"""Custom fields in the console: their order, their indexes, archiving and deleting."""

import re

import pytest

from tests import database
from tests.custom_fields.fields import build_index, create_field, create_fields, create_users
from tests.factories import create_tenant


@pytest.fixture
def tenant():
    return create_tenant(name="Acme", slug="acme")


@pytest.fixture
def base(tenant):
    return f"/console/tenants/{tenant.id}/custom-fields"


def shown(page):
    """The labels of a list, in their order."""
    return re.findall(r'<td class="main"><a[^>]*>([^<]+)<', page.text)


def moves(page, label):
    """What the buttons of a row send."""
    return {
        name: value
        for value, name in re.findall(
            rf'name="move" value="([^"]+)" aria-label="Move {label} (up|down)"', page.text
        )
    }


class TestOrder:
    @pytest.fixture
    def fields(self, tenant):
        found = [create_field(tenant, field_key=key, label=key) for key in ("one", "two", "three")]
        create_field(tenant, field_key="size", label="size", entity_type="tenant")
        return found

    @pytest.mark.parametrize(
        ("label", "way", "after"),
        [
            ("three", "up", ["one", "three", "two"]),
            ("one", "down", ["two", "one", "three"]),
            ("two", "down", ["one", "three", "two"]),
        ],
    )
    def test_is_changed_by_buttons(self, base, fields, label, way, after, browser):
        move = moves(browser.get(base), label)[way]

        answer = browser.post(f"{base}/order", data={"move": move})
        page = browser.get(answer.location)

        assert shown(page) == ["size", *after]
        assert f"{label} is number {after.index(label) + 1} of 3 now." in page.text

    def test_has_no_button_beyond_either_end(self, signed_in, base, fields):
        page = signed_in().get(base)

        assert [sorted(moves(page, each)) for each in ("one", "two", "three", "size")] == [
            ["down"],
            ["down", "up"],
            ["up"],
            [],
        ]

    def test_of_more_fields_than_the_api_lists_at_once_stays(self, signed_in, tenant, base):
        create_fields(tenant, [f"k{number:03}" for number in range(103)], label="A")
        ids = [row.id for row in database.query("SELECT id FROM custom_fields ORDER BY field_key")]

        signed_in().post(f"{base}/order", data={"move": f"{ids[102]} {ids[1]}"})

        found = database.query("SELECT id FROM custom_fields ORDER BY sort_order")
        assert [row.id for row in found] == [ids[0], ids[102], *ids[1:102]]

    def test_keeps_the_filters(self, base, fields, browser):
        page = browser.get(f"{base}?entity_type=user")
        action = re.search(r'id="order" method="post" action="([^"]+)"', page.text)[1]

        answer = browser.post(action, data={"move": moves(page, "three")["up"]})

        assert answer.location == f"{base}?entity_type=user"

    def test_says_when_the_other_field_is_gone(self, base, fields, browser):
        move = moves(browser.get(base), "three")["up"]
        database.execute("DELETE FROM custom_fields WHERE field_key = 'two'")

        page = browser.get(browser.post(f"{base}/order", data={"move": move}).location)

        assert "Somebody else has changed the fields meanwhile." in page.text
        assert shown(page) == ["size", "one", "three"]


class TestIndex:
    def test_is_asked_for_again_until_it_is_built(self, app, signed_in, tenant, base):
        create_users(tenant, 3)
        field = create_field(tenant, field_key="note", is_searchable=True)
        create_field(tenant, field_key="other")
        browser = signed_in()

        building = [browser.get(path).text for path in (base, f"{base}/{field.id}")]
        build_index(app, field)
        built = [browser.get(path).text for path in (base, f"{base}/{field.id}")]

        assert all("<progress" in text and 'hx-trigger="every 2s"' in text for text in building)
        assert all("<progress" not in text and "every 2s" not in text for text in built)
        assert all(">ready<" in text for text in built)
