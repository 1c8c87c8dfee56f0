"""/v1/custom-fields: definitions."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.db.writes import insert_row
from app.core.jobs.queues import Queue, connection, queue_named
from app.custom_fields import service
from app.custom_fields.models import CustomField
from app.custom_fields.search_index import builder
from tests.concurrency import at_once
from tests.custom_fields.fields import (
    build_index,
    create_field,
    create_fields,
    create_users,
    index_rows,
)
from tests.database import query, wait_for_lock
from tests.factories import (
    create_member,
    create_tenant,
    create_user,
    platform_token,
    platform_transaction,
)

MOST = "x" * (32 * 1024 - len('[""]') - 2)  # the length of an option that leaves two bytes free
BODY = {"entity_type": "user", "field_key": "team", "label": "Team", "field_type": "text"}


def queued(app) -> int:
    with app.app_context():
        return queue_named(Queue.INDEXES, connection()).count


def actions(field_id) -> list[str]:
    statement = "SELECT action FROM audit_events WHERE target_id = :id ORDER BY id"
    return [row.action for row in query(statement, id=str(field_id))]


class TestCreateField:
    def test_answers_the_field_with_its_defaults(self, api, tenant, admin):
        answer = api.post("/v1/custom-fields", token=admin, json=BODY)

        created = answer.get_json()["data"]
        del created["created_at"], created["updated_at"]
        assert created == {
            "id": created["id"],
            "idp_org_id": tenant.idp_org_id,
            **BODY,
            "options": None,
            "is_required": False,
            "is_searchable": False,
            "is_active": True,
            "sort_order": 0,
            "version": 1,
        }
        assert actions(created["id"]) == ["custom_field.created"]

    def test_queues_the_index_of_a_searchable_field_only(self, app, api, admin):
        api.post("/v1/custom-fields", token=admin, json=BODY)
        before = queued(app)
        searchable = {**BODY, "field_key": "desk", "is_searchable": True}
        answer = api.post("/v1/custom-fields", token=admin, json=searchable)

        path = f"/v1/custom-fields/{answer.get_json()['data']['id']}/index"
        assert (before, queued(app)) == (0, 1)
        assert api.get(path, token=admin).get_json()["data"]["state"] == "building"

    @pytest.mark.parametrize(
        ("field_type", "options"),
        [("text", []), ("integer", ["a"]), ("select", [str(n) for n in range(257)])],
    )
    def test_refuses_options_that_do_not_fit(self, api, field_type, options, admin):
        body = {**BODY, "field_type": field_type, "options": options}

        answer = api.post("/v1/custom-fields", token=admin, json=body)

        (fault,) = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert (fault["type"], fault["loc"]) == ("value_error", ["body", "options"])

    def test_takes_256_options_and_any_number_of_repeats(self, api, admin):
        options = [str(n) for n in range(256)] * 2
        body = {**BODY, "field_type": "select", "options": options}

        answer = api.post("/v1/custom-fields", token=admin, json=body)

        assert answer.status_code == 201
        assert len(answer.get_json()["data"]["options"]) == 256

    def test_a_key_is_taken_once_per_tenant_and_entity_type_also_by_archived_fields(self, api):
        tenant = create_tenant()
        _, _, token = create_member(tenant)
        field = create_field(tenant, field_key="team")
        create_field(create_tenant(), field_key="team")
        api.post(f"/v1/custom-fields/{field.id}/archive", token=token)

        taken = api.post("/v1/custom-fields", token=token, json=BODY)
        other = api.post("/v1/custom-fields", token=token, json={**BODY, "entity_type": "order"})

        assert taken.status_code == 409
        assert taken.get_json()["code"] == "field_key_taken"
        assert other.status_code == 201


class TestLimits:
    def test_a_tenant_has_at_most_256_fields_of_an_entity_type(self, api, tenant, admin):
        with platform_transaction():
            for number in range(255):
                place = {"tenant_id": tenant.id, "idp_org_id": tenant.idp_org_id}
                insert_row(CustomField, {**BODY, **place, "field_key": f"f{number}"})

        last = api.post("/v1/custom-fields", token=admin, json=BODY)
        over = api.post("/v1/custom-fields", token=admin, json={**BODY, "field_key": "over"})
        other = api.post("/v1/custom-fields", token=admin, json={**BODY, "entity_type": "order"})

        assert (last.status_code, over.status_code, other.status_code) == (201, 409, 201)
        assert "256" in over.get_json()["detail"]
        assert over.get_json()["code"] == "custom_field_limit"

    def test_at_most_20_are_searchable_whichever_way_they_become_it(self, api, tenant, admin):
        create_fields(tenant, [f"f{number}" for number in range(20)], is_searchable=True)
        plain = create_field(tenant)

        created = api.post("/v1/custom-fields", token=admin, json={**BODY, "is_searchable": True})
        patched = api.patch(
            f"/v1/custom-fields/{plain.id}", token=admin, json={"is_searchable": True}
        )

        assert (created.status_code, patched.status_code) == (409, 409)
        assert "20" in created.get_json()["detail"]
        assert patched.get_json()["code"] == "searchable_field_limit"
        assert service_field(plain).is_searchable is False

    def test_the_options_of_a_field_have_at_most_32_kib(self, api, admin):
        body = {**BODY, "field_type": "select"}

        over = api.post("/v1/custom-fields", token=admin, json={**body, "options": [MOST + "éx"]})
        fits = api.post("/v1/custom-fields", token=admin, json={**body, "options": [MOST + "é"]})
        path = f"/v1/custom-fields/{fits.get_json()['data']['id']}"
        patched = api.patch(path, token=admin, json={"options": [MOST, "x"]})

        assert (over.status_code, fits.status_code, patched.status_code) == (409, 201, 409)
        assert over.get_json() == {
            "detail": (
                "The options of a custom field can have at most 32 KiB (32768 bytes) of JSON,"
                " those of all custom fields of an entity type 2 MiB."
            ),
            "code": "options_limit",
        }
        assert api.get(path, token=admin).get_json()["data"]["options"] == [MOST + "é"]

    def test_the_options_of_all_fields_have_at_most_2_mib(self, api, tenant, admin):
        body = {**BODY, "field_type": "select", "options": [MOST]}
        with platform_transaction():
            place = {"tenant_id": tenant.id, "idp_org_id": tenant.idp_org_id}
            for number in range(64):
                insert_row(CustomField, {**body, **place, "field_key": f"f{number}"})

        over = api.post("/v1/custom-fields", token=admin, json=body)
        fits = api.post("/v1/custom-fields", token=admin, json={**body, "options": ["a"]})
        path = f"/v1/custom-fields/{fits.get_json()['data']['id']}"
        patched = api.patch(path, token=admin, json={"options": [MOST]})
        reduced = api.patch(path, token=admin, json={"options": []})

        answers = (over, fits, patched, reduced)
        assert [answer.status_code for answer in answers] == [409, 201, 409, 200]
        assert patched.get_json()["code"] == "options_limit"

    def test_at_most_16_fields_are_of_type_email(self, api, tenant, admin):
        create_fields(tenant, [f"f{number}" for number in range(16)], field_type="email")

        over = api.post("/v1/custom-fields", token=admin, json={**BODY, "field_type": "email"})
        other = api.post("/v1/custom-fields", token=admin, json={**BODY, "field_type": "url"})

        assert (over.status_code, other.status_code) == (409, 201)
        assert over.get_json()["code"] == "email_field_limit"

    def test_larger_options_of_before_can_be_read_and_the_field_changed(self, api, tenant, admin):
        large = {"field_type": "select", "options": [MOST * 2]}
        with platform_transaction():
            place = {"tenant_id": tenant.id, "idp_org_id": tenant.idp_org_id}
            field = insert_row(CustomField, {**BODY, **place, **large})
        path = f"/v1/custom-fields/{field.id}"

        renamed = api.patch(path, token=admin, json={"label": "New", "options": large["options"]})
        reduced = api.patch(path, token=admin, json={"options": ["a"]})

        assert (renamed.status_code, reduced.status_code) == (200, 200)
        assert renamed.get_json()["data"]["options"] == large["options"]

    def test_holds_when_the_last_places_are_taken_at_once(self, api, tenant, admin):
        create_fields(tenant, [f"f{number}" for number in range(18)], is_searchable=True)

        def create(number):
            body = {**BODY, "field_key": f"new{number}", "is_searchable": True}
            return api.post("/v1/custom-fields", token=admin, json=body).status_code

        statuses = at_once([lambda n=number: create(n) for number in range(6)])

        assert sorted(statuses) == [201, 201, 409, 409, 409, 409]


def service_field(field):
    with platform_transaction():
        return service.get_field(field.id)


class TestReadFields:
    def test_narrows_by_tenant_type_and_state(self, api, tenant):
        token = platform_token()
        create_field(tenant, field_key="kept", field_type="date", is_searchable=True)
        create_field(tenant, entity_type="order")
        gone = create_field(tenant, field_key="gone")
        create_field(create_tenant(), field_key="elsewhere")
        api.post(f"/v1/custom-fields/{gone.id}/archive", token=token)

        def keys(query):
            path = f"/v1/custom-fields?tenant_id={tenant.id}&{query}"
            return [row["field_key"] for row in api.get(path, token=token).get_json()["data"]]

        assert keys("entity_type=user") == ["kept", "gone"]
        assert keys("entity_type=user&is_active=false") == ["gone"]
        assert keys("field_type=date&is_searchable=true") == ["kept"]


class TestArchiveAndRestore:
    def test_archives_and_restores_once_each(self, app, api):
        field = create_field(create_tenant())
        path, token = f"/v1/custom-fields/{field.id}", platform_token()

        archived = [api.post(f"{path}/archive", token=token).get_json()["data"] for _ in "ab"]
        restored = [
            api.post(f"{path}/restore", token=token, json={"confirm": True}).get_json()["data"]
            for _ in "ab"
        ]

        assert [(row["is_active"], row["version"]) for row in archived] == [(False, 2)] * 2
        assert [(row["is_active"], row["version"]) for row in restored] == [(True, 3)] * 2
        assert actions(field.id) == [f"custom_field.{done}" for done in DONE]
        assert queued(app) == 0

    def test_restoring_a_searchable_field_queues_its_index_once(self, app, api, clean):
        field = create_field(create_tenant(), is_searchable=True)
        path, token = f"/v1/custom-fields/{field.id}", platform_token()
        api.post(f"{path}/archive", token=token)
        with app.app_context():
            queue_named(Queue.INDEXES, connection()).empty()

        for _ in "ab":
            api.post(f"{path}/restore", token=token, json={"confirm": True})

        assert queued(app) == 1
        assert api.get(f"{path}/index", token=token).get_json()["data"]["state"] == "building"


DONE = ("created", "archived", "restored")


class TestDelete:
    def test_deletes_an_archived_field_with_its_index_and_leaves_the_values(self, app, api, tenant):
        user = create_user(tenant, meta_data={"team": "red"})
        field = create_field(tenant, field_key="team", is_searchable=True)
        build_index(app, field)
        path, token = f"/v1/custom-fields/{field.id}", platform_token()
        api.post(f"{path}/archive", token=token)

        answer = api.delete(path, token=token)

        left = query("SELECT count(*) AS number FROM custom_field_indexes")[0].number
        assert answer.status_code == 204
        assert api.get(path, token=token).status_code == 404
        assert (index_rows(field), left) == ([], 0)
        read = api.get(f"/v1/users/{user.id}", token=token).get_json()["data"]
        assert read["meta_data"] == {"team": "red"}
        assert actions(field.id)[-1] == "custom_field.deleted"
        again = create_field(tenant, field_key="team", field_type="integer")
        assert again.field_type == "integer"

    def test_refuses_an_active_field(self, api):
        field = create_field(create_tenant())

        answer = api.delete(f"/v1/custom-fields/{field.id}", token=platform_token())

        assert (answer.status_code, answer.get_json()["code"]) == (409, "custom_field_active")

    def test_refuses_while_very_many_index_rows_are_left(self, app, api, monkeypatch, tenant):
        field = create_field(tenant, field_key="note", is_searchable=True)
        create_users(tenant, 10)
        build_index(app, field)
        path, token = f"/v1/custom-fields/{field.id}", platform_token()
        api.post(f"{path}/archive", token=token)
        monkeypatch.setattr(builder, "DELETED_AT_ONCE", 2)

        early = api.delete(path, token=token)
        build_index(app, field)
        later = api.delete(path, token=token)

        assert (early.status_code, early.get_json()["code"]) == (409, "index_rows_left")
        assert later.status_code == 204


class TestReorder:
    def test_numbers_the_named_fields_first_and_the_others_after(self, api, tenant):
        _, b, c, d = create_fields(tenant, "abcd")
        other = create_field(tenant, entity_type="order", sort_order=9)
        body = {"entity_type": "user", "field_ids": [str(d.id), str(b.id)]}
        path = f"/v1/custom-fields/reorder?tenant_id={tenant.id}"

        answer = api.post(path, token=platform_token(), json=body)

        shown = [(row["field_key"], row["sort_order"]) for row in answer.get_json()["data"]]
        assert shown == [("d", 0), ("b", 1), ("a", 2), ("c", 3)]
        assert service_field(other).sort_order == 9
        assert actions(d.id) == ["custom_field.created"]
        assert actions(c.id)[-1] == "custom_field.reordered"

    def test_keeps_the_order_that_another_request_stores_meanwhile(self, api, tenant):
        fields = create_fields(tenant, "abcd")
        token = platform_token()
        path = f"/v1/custom-fields/reorder?tenant_id={tenant.id}"
        body = {"entity_type": "user", "field_ids": [str(fields[1].id)]}

        with ThreadPoolExecutor(1) as thread:
            with platform_transaction():
                backwards = [field.id for field in reversed(fields)]
                service.reorder(tenant.id, "user", backwards, actor=SYSTEM_CLI)
                second = thread.submit(api.post, path, token=token, json=body)
                wait_for_lock(second)
            answer = second.result()

        assert [row["field_key"] for row in answer.get_json()["data"]] == [*"bdca"]

    def test_refuses_ids_that_are_unknown_or_named_twice(self, api, tenant, admin):
        field, foreign = create_field(tenant), create_field(create_tenant())
        ids = [str(field.id), str(field.id), str(foreign.id)]

        answer = api.post(
            "/v1/custom-fields/reorder", token=admin, json={"entity_type": "user", "field_ids": ids}
        )

        faults = answer.get_json()["detail"]
        assert [fault["loc"] for fault in faults] == [
            ["body", "field_ids", 1],
            ["body", "field_ids", 2],
        ]
