"""What lines do to tenants, users, memberships, subscriptions and overrides."""

import json
from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.flags.models import FeatureOverride
from app.imports import lines
from app.memberships.models import Membership
from app.plans.models import PlanPreset
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User, UserErasure
from tests.custom_fields.fields import create_field, index_rows
from tests.database import row, rows
from tests.factories import (
    create_assignment,
    create_member,
    create_preset,
    create_tenant,
    create_user,
    limit_flag,
    save,
)
from tests.imports.files import (
    bring_in,
    company,
    member_line,
    override_line,
    snapshot,
    subscription_line,
    tenant_line,
    user_line,
)
from tests.scim.directory import Directory, create_connection

COMPANY = company(mailing_city="Oslo")
BY_ID = {"type": "membership", "idp_org_id": "org", "idp_membership_id": "om"}


def outcomes(counts, outcome):
    return {kind: numbers[outcome] for kind, numbers in counts.items() if numbers[outcome]}


def fault_of(found):
    """The line, and the type and place of the only error of the only fault."""
    (fault,) = found
    (entry,) = fault.errors
    return fault.line, entry["type"], entry["loc"]


@pytest.fixture
def preset(app):
    return create_preset("growth", seats=5)


class TestNewRows:
    def test_are_created_with_their_values(self, app, api, preset):
        counts, faults = bring_in(app, api, *COMPANY)

        tenant, ada, bob = row(Tenant), row(User, idp_user_id="ada"), row(User, idp_user_id="bob")
        assert faults == []
        assert outcomes(counts, "created") == {
            "tenant": 1, "subscription": 1, "user": 2, "membership": 2, "override": 1,
        }  # fmt: skip
        assert (tenant.slug, tenant.mailing_city, tenant.plan_name) == ("acme", "Oslo", "growth")
        assert (ada.first_name, ada.is_active) == ("Ada", True)
        assert ada.meta_data == {"desk": {"floor": 2}, "none": None}
        assert (bob.is_active, row(Membership, user_id=bob.id).is_active) == (False, False)
        assert row(Membership, user_id=ada.id).idp_membership_id == "om_1"
        assert row(FeatureOverride).flag_value == 7
        assert row(Subscription).status_class == "live"

    def test_leave_the_audit_rows_of_requests(self, app, api, preset):
        bring_in(app, api, *COMPANY)

        actions = sorted(event.action for event in rows(AuditEvent))
        assert actions == sorted(
            [
                *("import.created", "import.completed", "tenant.created", "tenant.plan_changed"),
                *("subscription.created", "user.created", "user.created", "override.created"),
                *("membership.created", "membership.created"),
            ]
        )
        assert {event.actor for event in rows(AuditEvent)} == {"platform:platform-operator"}

    def test_of_the_same_name_get_slugs_of_their_own(self, app, api):
        create_tenant(slug="acme")

        bring_in(app, api, *(tenant_line(f"new_{n}", name="Acme") for n in range(3)))

        assert {one.slug for one in rows(Tenant)} == {"acme", "acme-2", "acme-3", "acme-4"}

    def test_are_searchable_by_custom_fields(self, app, api):
        tenant = create_tenant(idp_org_id="org")
        field = create_field(tenant, field_key="desk", field_type="integer", is_searchable=True)

        bring_in(app, api, user_line("ada", meta_data={"desk": 7}), user_line("bob"))

        (indexed,) = index_rows(field)
        assert indexed.number_value == 7


class TestTheSameFileAgain:
    def test_changes_nothing(self, app, api, preset):
        bring_in(app, api, *COMPANY)
        before = snapshot()
        audited = len(rows(AuditEvent))

        counts, faults = bring_in(app, api, *COMPANY)

        assert faults == []
        assert outcomes(counts, "unchanged") == {
            "tenant": 1, "subscription": 1, "user": 2, "membership": 2, "override": 1,
        }  # fmt: skip
        assert snapshot() == before
        assert len(rows(AuditEvent)) == audited + 2  # the import's own


class TestChanges:
    def test_are_written_and_audited(self, app, api, preset):
        bring_in(app, api, *COMPANY)

        counts, faults = bring_in(
            app,
            api,
            tenant_line(mailing_city="Bergen", is_active=False),
            user_line("ada", last_name="Lovelace", meta_data={"floor": 2}),
            user_line("bob", is_active=True),
            member_line("bob", "admin", is_active=True),
            subscription_line(bp_status="canceled"),
            override_line("seats", 8, preset_name="growth"),
        )

        tenant, ada, bob = row(Tenant), row(User, idp_user_id="ada"), row(User, idp_user_id="bob")
        assert faults == []
        assert outcomes(counts, "updated") == {
            "tenant": 1, "subscription": 1, "user": 2, "membership": 1, "override": 1,
        }  # fmt: skip
        assert (tenant.is_active, tenant.plan_name) == (False, "free")
        assert (ada.last_name, ada.meta_data) == ("Lovelace", {"floor": 2})
        assert (bob.is_active, row(Membership, user_id=bob.id).role) == (True, "admin")
        assert row(FeatureOverride).flag_value == 8
        assert {
            "tenant.updated", "tenant.suspended", "user.updated", "user.meta_data_patched",
            "membership.updated", "subscription.updated", "override.updated",
        } <= {event.action for event in rows(AuditEvent)}  # fmt: skip

    def test_of_one_row_in_one_file_follow_their_order(self, app, api):
        names = [f"Name {number}" for number in range(5)]

        bring_in(app, api, tenant_line(), *(user_line("ada", first_name=name) for name in names))

        assert row(User).first_name == "Name 4"
        assert row(User).version == 5

    def test_of_metadata_reach_the_search_index(self, app, api):
        tenant = create_tenant(idp_org_id="org")
        field = create_field(tenant, field_key="desk", field_type="integer", is_searchable=True)
        bring_in(app, api, user_line("ada", meta_data={"desk": 7}))
        bring_in(app, api, user_line("bob", meta_data={"desk": 8}))

        bring_in(app, api, user_line("ada", meta_data={}), user_line("bob", meta_data={"desk": 9}))

        assert [one.number_value for one in index_rows(field)] == [9]

    @pytest.fixture
    def member(self, app, api):
        bring_in(app, api, tenant_line(), user_line("p"), member_line("p", idp_membership_id="om"))

    def test_of_one_membership_by_either_id_follow_their_order(self, app, api, member):
        first = {**BY_ID, "role": "billing", "is_active": False}

        counts, faults = bring_in(app, api, first, member_line("p", "viewer"))

        (membership,) = rows(Membership)
        assert (counts["membership"]["updated"], faults) == (2, [])
        assert (membership.role, membership.is_active) == ("viewer", False)

    def test_of_a_memberships_id_count_for_the_next_line(self, app, api, member):
        new = member_line("p", idp_membership_id="new")

        _, faults = bring_in(app, api, new, {**BY_ID, "role": "billing"})

        assert [fault.line for fault in faults] == [2]

    def test_older_than_the_last_update_of_a_subscription_are_ignored(self, app, api):
        stamps = ["2026-02-02T00:00:00Z", "2026-02-01T00:00:00Z"]
        bring_in(app, api, tenant_line(), subscription_line(source_timestamp=stamps[0]))

        counts, _ = bring_in(
            app, api, subscription_line(bp_status="unpaid", source_timestamp=stamps[1])
        )

        assert outcomes(counts, "unchanged") == {"subscription": 1}
        assert row(Subscription).bp_status == "active"


class TestFaults:
    @pytest.mark.parametrize(
        ("line", "type_", "place"),
        [
            (b"no json", "json_invalid", ["body", 0]),
            (b'{"type": "tenant"', "json_invalid", ["body", 17]),
            (b"\xff\xfe\x00", "json_invalid", ["body"]),
            (b"[" * 200 + b"]" * 200, "json_invalid", ["body"]),
            (b"9" * 5000, "json_invalid", ["body"]),
            (b"[]", "model_attributes_type", ["body"]),
            (b"null", "model_attributes_type", ["body"]),
            ({}, "missing", ["body", "type"]),
            ({"type": "person"}, "literal_error", ["body", "type"]),
            ({"type": ["user"]}, "literal_error", ["body", "type"]),
            ({"type": "tenant", "idp_org_id": "x"}, "missing", ["body", "name"]),
            (tenant_line("x", slug="Not A Slug"), "string_pattern_mismatch", ["body", "slug"]),
            (tenant_line("x", slug="taken"), "slug_taken", ["body"]),
            (tenant_line("x\0", name="x"), "string_unicode", ["body", "idp_org_id"]),
            (b'{"type": "tenant", "idp_org_id": "\\ud800", "name": "x"}', "string_unicode",
             ["body", "idp_org_id"]),
            (user_line("eve", email="nobody"), "value_error", ["body", "email"]),
            (user_line("eve", "unknown"), "value_error", ["body", "idp_org_id"]),
            (user_line("eve", plan="x"), "extra_forbidden", ["body", "plan"]),
            (user_line("eve", meta_data={"desk": "x"}), "int_type", ["body", "meta_data", "desk"]),
            (user_line("eve", meta_data={"x": "x" * 33_000}), "value_error", ["body", "meta_data"]),
            (member_line("nobody"), "value_error", ["body", "idp_user_id"]),
            (member_line("ada", "king"), "enum", ["body", "role"]),
            (member_line(""), "missing", ["body", "idp_user_id"]),
            (member_line("ada", "member"), "last_owner", ["body"]),
            (member_line("ada", "owner", is_active=False), "last_owner", ["body"]),
            (user_line("ada", is_active=False), "last_owner", ["body"]),
            (member_line("bob", "viewer", idp_membership_id="om_1"), "idp_membership_id_taken",
             ["body"]),
            (subscription_line(plan_name=""), "string_too_short", ["body", "plan_name"]),
            (override_line("unknown", 1), "value_error", ["body", "flag_key"]),
            (override_line("seats", "x"), "float_type", ["body", "flag_value"]),
            (override_line("seats", 1, preset_name="none"), "value_error", ["body", "preset_name"]),
            (override_line("seats", 1, expires_at="2001-01-01T00:00:00Z"), "value_error",
             ["body", "expires_at"]),
        ],
    )  # fmt: skip
    def test_are_reported_and_the_rest_goes_on(self, app, api, line, type_, place):
        create_preset("free", seats=5)
        create_tenant(slug="taken")
        tenant = create_tenant(idp_org_id="org")
        create_field(tenant, field_key="desk", field_type="integer")
        create_member(tenant, "owner", idp_user_id="ada")
        create_user(tenant, idp_user_id="bob")
        known = member_line("ada", "owner", idp_membership_id="om_1")

        counts, faults = bring_in(app, api, known, line, user_line("new"), member_line("new"))

        assert fault_of(faults) == (2, type_, place)
        assert row(User, idp_user_id="new").email == "new@example.com"
        assert sum(numbers["failed"] for numbers in counts.values()) == 1

    def test_say_what_the_line_is_about(self, app, api):
        _, faults = bring_in(app, api, user_line("ada", "gone"), member_line("ada"))

        assert [(one.type, one.idp_org_id, one.name) for one in faults] == [
            ("user", "gone", "ada"), ("membership", "org", "ada"),
        ]  # fmt: skip

    def test_of_a_line_that_is_too_long_are_reported(self, app, api):
        long = tenant_line("long", name="x" * lines.MAX_LINE)

        _, faults = bring_in(app, api, tenant_line("a"), long, tenant_line("b"))

        assert fault_of(faults) == (2, "value_error", ["body"])
        assert {one.idp_org_id for one in rows(Tenant)} == {"a", "b"}

    def test_have_errors_of_limited_size(self, app, api):
        strange = {"type": "user", **{f"{number:0200}": "x" * 5000 for number in range(150)}}

        _, (fault,) = bring_in(app, api, strange)

        assert 0 < len(json.dumps(fault.errors)) < 10_000
        assert {entry["input"] for entry in fault.errors} == {None}

    def test_of_unknown_parents_depend_on_the_order(self, app, api):
        _, faults = bring_in(app, api, user_line("ada"), tenant_line(), user_line("bob"))

        assert fault_of(faults) == (1, "value_error", ["body", "idp_org_id"])
        assert [one.idp_user_id for one in rows(User)] == ["bob"]

    def test_beyond_the_first_thousand_are_counted_only(self, app, api):
        counts, faults = bring_in(app, api, *([b"x"] * 1100))

        assert [fault.line for fault in faults] == list(range(1, 1001))
        assert counts["unknown"]["failed"] == 1100


class TestBlankLines:
    def test_are_counted_and_ignored(self, app, api):
        _, faults = bring_in(app, api, b"\xef\xbb\xbf", b"", b"  \r", tenant_line(), b"x", b"")

        assert [fault.line for fault in faults] == [5]
        assert len(rows(Tenant)) == 1


class TestOwners:
    @pytest.mark.parametrize(
        ("is_active", "lines", "failed"),
        [
            (True, [member_line("ada"), user_line("bob", is_active=False)], [(2, "last_owner")]),
            (False, [member_line("ada")], [(1, "last_owner")]),
            (False, [user_line("bob", is_active=True), member_line("ada")], []),
            (False, [user_line("bob", is_active=True), member_line("bob", "owner"), member_line("ada")],
             []),
        ],
        ids=["both leave", "the other has left", "comes back", "is owner again"],
    )  # fmt: skip
    def test_of_a_tenant_do_not_all_leave(self, app, api, is_active, lines, failed):
        tenant = create_tenant(idp_org_id="org")
        create_member(tenant, "owner", idp_user_id="ada")
        create_member(tenant, "owner", idp_user_id="bob", is_active=is_active)

        _, faults = bring_in(app, api, *lines)

        assert [(one.line, one.errors[0]["type"]) for one in faults] == failed

    @pytest.mark.parametrize(
        ("lines", "failed"),
        [
            ([member_line("ada"), member_line("bob", "admin")], []),
            ([member_line("ada"), member_line("bob", is_active=False)], [2]),
            ([member_line("bob", is_active=False), member_line("ada")], [2]),
            ([member_line("ada"), user_line("bob", is_active=False)], [2]),
            ([member_line("bob", "owner"), member_line("bob"), member_line("ada")], []),
        ],
        ids=["another role", "the assigned leaves", "the other leaves", "the user", "role again"],
    )
    def test_by_assignment_count(self, app, api, lines, failed):
        tenant = create_tenant(idp_org_id="org")
        create_member(tenant, "owner", idp_user_id="ada")
        _, membership, _ = create_member(tenant, "viewer", idp_user_id="bob")
        create_assignment(tenant, "owner", membership_id=membership.id)

        _, faults = bring_in(app, api, *lines)

        assert [one.line for one in faults] == failed


class TestAddresses:
    def test_of_other_active_users_are_refused_in_whatever_case(self, app, api):
        _, faults = bring_in(
            app,
            api,
            tenant_line(),
            user_line("ada", email="ada@example.com"),
            user_line("other", email="ADA@example.com"),
            user_line("gone", email="Ada@Example.com", is_active=False),
        )

        assert [(one.line, one.errors[0]["type"]) for one in faults] == [(3, "email_taken")]
        assert {user.idp_user_id for user in rows(User)} == {"ada", "gone"}


class TestTenantMetadata:
    def test_is_checked_and_replaced(self, app, api):
        bring_in(app, api, tenant_line(meta_data={"segment": "small", "note": "x"}))
        create_field(row(Tenant), entity_type="tenant", field_key="segment", field_type="integer")

        _, faults = bring_in(
            app,
            api,
            tenant_line(meta_data={"segment": "large"}),
            tenant_line(meta_data={"segment": 5}),
        )

        assert [(one.line, one.errors[0]["loc"]) for one in faults] == [
            (1, ["body", "meta_data", "segment"])
        ]
        assert row(Tenant).meta_data == {"segment": 5}
        assert rows(AuditEvent, action="tenant.meta_data_patched")


class TestDeletion:
    def test_of_the_tenant_keeps_it_suspended(self, app, api):
        create_tenant(idp_org_id="org", is_active=False, deletes_at=utcnow() + timedelta(days=9))

        counts, faults = bring_in(app, api, tenant_line(is_active=True), user_line("ada"))

        assert fault_of(faults) == (1, "tenant_deleting", ["body"])
        assert outcomes(counts, "created") == {"user": 1}
        assert row(Tenant).is_active is False

    def test_that_is_due_lets_nobody_be_added(self, app, api):
        create_tenant(idp_org_id="org", is_active=False, deletes_at=utcnow())

        _, faults = bring_in(app, api, user_line("ada"))

        assert fault_of(faults) == (1, "tenant_deleting", ["body"])
        assert rows(User) == []

    def test_of_a_user_keeps_the_user_inactive(self, app, api):
        tenant = create_tenant(idp_org_id="org")
        user = create_user(tenant, idp_user_id="ada", is_active=False)
        save(
            UserErasure, tenant_id=tenant.id, user_id=user.id, requested_by="x", is_everywhere=False
        )

        _, faults = bring_in(app, api, user_line("ada", is_active=True))

        assert fault_of(faults) == (1, "erasure_requested", ["body"])
        assert row(User).is_active is False


class TestSeats:
    def test_beyond_the_limit_are_refused_line_by_line_and_cross_thresholds(self, app, api):
        save(PlanPreset, name="free", flags=[limit_flag("seats", 2, warn_at=[50, 100])])
        people = ["ada", "bob", "eve", "joe"]
        members = [member_line(name, role="owner") for name in people]

        _, faults = bring_in(app, api, tenant_line(), *map(user_line, people), *members)

        assert [(one.line, one.errors[0]["type"]) for one in faults] == [
            (8, "seat_limit"), (9, "seat_limit"),
        ]  # fmt: skip
        assert len(rows(Membership)) == 2
        crossed = [
            event.after["percent"]
            for event in rows(AuditEvent)
            if event.action.startswith("limit.")
        ]
        assert crossed == [50, 100]

    def test_are_not_taken_by_who_is_not_active(self, app, api):
        """Also where more seats are taken than the limit allows."""
        people = [user_line("a"), user_line("d"), member_line("a", "owner"), member_line("d")]
        bring_in(app, api, tenant_line(), *people)
        save(PlanPreset, name="free", flags=[limit_flag("seats", 1)])

        _, faults = bring_in(
            app,
            api,
            user_line("b", is_active=False),
            user_line("c"),
            member_line("b", is_active=False),
            member_line("c", is_active=False),
        )

        assert faults == []


class TestManagedPeople:
    """People whom a directory provisions: the directory changes them, imports do not."""

    @pytest.fixture
    def tenant(self, app):
        tenant = create_tenant(idp_org_id="org")
        create_member(tenant, role="owner")
        roles = {"Finance": "billing"}
        directory = Directory(app, create_connection(tenant, group_roles=roles)[1])
        name = {"givenName": "Ada"}
        for person in ("ada", "bob"):
            emails = [{"value": f"{person}@example.com"}]
            made = directory.add_user(person, externalId=person, name=name, emails=emails)
        directory.add_group("Finance", made["id"])
        return tenant

    @pytest.mark.parametrize(
        "line",
        [
            user_line("ada", first_name="Eve"),
            user_line("ada", is_active=False),
            member_line("ada", is_active=False),
            member_line("bob", "viewer"),
        ],
    )
    def test_are_refused(self, app, api, tenant, line):
        counts, faults = bring_in(app, api, line)

        assert fault_of(faults) == (1, "managed_by_directory", ["body"])
        assert not any(numbers["updated"] for numbers in counts.values())

    @pytest.mark.parametrize(
        "line",
        [
            user_line("ada", first_name="Ada"),
            user_line("ada", meta_data={"desk": 7}),
            member_line("ada", "viewer"),
            member_line("bob", "billing"),
        ],
    )
    def test_keep_what_the_directory_says_and_can_change_in_the_rest(self, app, api, tenant, line):
        _, faults = bring_in(app, api, line)

        assert faults == []
