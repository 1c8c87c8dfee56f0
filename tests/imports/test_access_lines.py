"""Lines about roles, resources and assignments."""

import json
from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.memberships.models import Membership
from app.roles.models import AccessResource, AccessRole, RoleAssignment
from app.tenants.models import Tenant
from tests.database import row, rows
from tests.factories import create_assignment, create_permission
from tests.imports.files import bring_in, member_line, tenant_line, user_line
from tests.roles.test_role_assignments import create_group


def role_line(key, *permissions, **values):
    line = {"type": "role", "idp_org_id": "org", "key": key, "permissions": [*permissions]}
    return {**line, **values}


def resource_line(name, parent=None, **values):
    place = {"type": "resource", "idp_org_id": "org", "resource": {"type": "doc", "id": name}}
    return {**place, "parent": parent and {"type": "doc", "id": parent}, **values}


def assignment_line(name, role, **values):
    line = {"type": "role_assignment", "idp_org_id": "org", "idp_user_id": name, "role": role}
    return {**line, **values}


def on(name):
    return {"resource": {"type": "doc", "id": name}}


FACTS = {"status": "open", "a": {"second": 1.0, "x": [True, None]}}
PEOPLE = [
    tenant_line(slug="acme"), user_line("ada"), user_line("bob"), member_line("ada", "owner"),
    member_line("bob"),
]  # fmt: skip
ACCESS = [
    role_line("zeta", "docs:read", "users:read", name="Zeta"),
    role_line("alpha", inherits="zeta", assignable_by="owner"),
    resource_line("z", attributes=FACTS),
    resource_line("a", "z"),
    resource_line("b", "a"),
    assignment_line("bob", "alpha"),
    assignment_line("bob", "zeta", **on("b"), expires_at="2099-01-01T00:00:00Z"),
    assignment_line("ada", "viewer"),
]


@pytest.fixture
def run(app):
    def invoke(*words, **options):
        return app.test_cli_runner().invoke(args=[*words], **options)

    return invoke


@pytest.fixture
def permission(app):
    return create_permission("docs:read")


def errors_of(faults):
    return [(fault.line, fault.errors[0]["type"], fault.errors[0]["loc"]) for fault in faults]


def outcomes(counts):
    """The numbers of roles, resources and assignments that are not zero."""
    kinds = ("role", "resource", "role_assignment")
    found = {kind: counts[kind] for kind in kinds if kind in counts}
    return {kind: {name: one for name, one in of.items() if one} for kind, of in found.items()}


class TestNewRows:
    def test_are_created_with_their_values(self, app, api, permission):
        counts, faults = bring_in(app, api, *PEOPLE, *ACCESS)

        zeta, alpha = row(AccessRole, key="zeta"), row(AccessRole, key="alpha")
        bob = row(Membership, role="member")
        (for_all,) = rows(RoleAssignment, role_id=alpha.id)
        (for_b,) = rows(RoleAssignment, role_id=zeta.id)
        assert faults == []
        assert outcomes(counts) == {
            "role": {"created": 2}, "resource": {"created": 3}, "role_assignment": {"created": 3},
        }  # fmt: skip
        assert (zeta.name, zeta.permissions) == ("Zeta", ["docs:read", "users:read"])
        assert (alpha.name, alpha.inherits, alpha.assignable_by) == ("alpha", "zeta", "owner")
        assert row(AccessResource, id="z").attributes == FACTS
        assert row(AccessResource, id="b").parent_id == "a"
        assert (for_all.membership_id, for_all.resource_id) == (bob.id, None)
        assert (for_b.resource_id, for_b.expires_at.year, for_b.source) == ("b", 2099, "api")

    def test_leave_the_audit_rows_of_requests(self, app, api, permission):
        bring_in(app, api, *PEOPLE)
        before = {event.id for event in rows(AuditEvent)}

        bring_in(app, api, *ACCESS)

        new = [event.action for event in rows(AuditEvent) if event.id not in before]
        assert sorted(new) == sorted(
            [
                *("import.created", "import.completed", "role.created", "role.created"),
                *["resource.created"] * 3,
                *["role_assignment.created"] * 3,
            ]
        )

    def test_are_found_by_the_e_mail_address_of_an_active_user(self, app, api):
        line = assignment_line("", "viewer", email="BOB@example.com")

        _, faults = bring_in(app, api, *PEOPLE, line)

        assert faults == []
        assert row(RoleAssignment).membership_id == row(Membership, role="member").id


class TestTheSameFileAgain:
    def test_changes_nothing(self, app, api, permission):
        bring_in(app, api, *PEOPLE, *ACCESS)
        models = (AccessRole, AccessResource, RoleAssignment)
        before = [rows(model) for model in models]
        audited = len(rows(AuditEvent))

        counts, faults = bring_in(app, api, *PEOPLE, *ACCESS)

        assert faults == []
        assert outcomes(counts) == {
            "role": {"unchanged": 2},
            "resource": {"unchanged": 3},
            "role_assignment": {"unchanged": 3},
        }
        assert [rows(model) for model in models] == before
        assert len(rows(AuditEvent)) == audited + 2  # the import's own


class TestChanges:
    def test_set_the_fields_that_the_line_has(self, app, api, permission):
        bring_in(app, api, *PEOPLE, *ACCESS)
        role = {"type": "role", "idp_org_id": "org", "key": "alpha", "name": "First"}
        moved = resource_line("b", "z")
        kept = {"type": "resource", "idp_org_id": "org", **on("a"), "attributes": {"n": 1}}
        longer = assignment_line("bob", "zeta", **on("b"), expires_at=None)

        counts, faults = bring_in(app, api, role, moved, kept, longer)

        alpha, a = row(AccessRole, key="alpha"), row(AccessResource, id="a")
        assert faults == []
        assert outcomes(counts) == {
            "role": {"updated": 1}, "resource": {"updated": 2}, "role_assignment": {"updated": 1},
        }  # fmt: skip
        assert (alpha.name, alpha.inherits, alpha.assignable_by) == ("First", "zeta", "owner")
        assert (a.parent_id, a.attributes) == ("z", {"n": 1})
        assert row(AccessResource, id="b").parent_id == "z"
        assert [one.expires_at for one in rows(RoleAssignment)] == [None] * 3


class TestRefused:
    def test_is_a_line_that_a_service_refuses_and_no_other(self, app, api, permission):
        past = (utcnow() - timedelta(days=1)).isoformat()
        lines = [
            role_line("viewer"),
            role_line("beta", "no:such"),
            role_line("beta", inherits="nobody"),
            role_line("zeta", inherits="alpha"),
            resource_line("c", "nowhere"),
            resource_line("z", "b"),
            assignment_line("eve", "zeta"),
            assignment_line("", "zeta", email="eve@example.com"),
            assignment_line("bob", "nobody"),
            assignment_line("bob", "zeta", **on("nowhere")),
            assignment_line("bob", "alpha", expires_at=past),
            assignment_line("", "zeta"),
        ]
        bring_in(app, api, *PEOPLE, *ACCESS)
        before = rows(RoleAssignment)

        counts, faults = bring_in(app, api, *lines, assignment_line("bob", "zeta"))

        assert errors_of(faults) == [
            (1, "role_exists", ["body"]),
            (2, "value_error", ["body", "permissions"]),
            (3, "value_error", ["body", "inherits"]),
            (4, "role_cycle", ["body"]),
            (5, "parent_not_found", ["body"]),
            (6, "resource_cycle", ["body"]),
            (7, "value_error", ["body", "idp_user_id"]),
            (8, "value_error", ["body", "email"]),
            (9, "role_not_found", ["body"]),
            (10, "resource_not_found", ["body"]),
            (11, "value_error", ["body", "expires_at"]),
            (12, "missing", ["body", "idp_user_id"]),
        ]
        assert counts["role_assignment"]["created"] == 1
        assert [one for one in rows(RoleAssignment) if one in before] == before

    def test_is_a_role_of_another_tenant(self, app, api):
        bring_in(app, api, *PEOPLE, tenant_line("other"), role_line("theirs", idp_org_id="other"))

        _, faults = bring_in(app, api, assignment_line("bob", "theirs"))

        assert errors_of(faults) == [(1, "role_not_found", ["body"])]

    def test_is_an_end_for_the_last_owner(self, app, api):
        lines = [
            *PEOPLE[:2], member_line("ada"), assignment_line("ada", "owner"),
            assignment_line("ada", "owner", expires_at="2099-01-01T00:00:00Z"),
        ]  # fmt: skip

        _, faults = bring_in(app, api, *lines)

        assert errors_of(faults) == [(5, "last_owner", ["body"])]
        assert row(RoleAssignment).expires_at is None

    def test_is_no_owner_who_goes_after_an_assignment(self, app, api):
        bring_in(app, api, *PEOPLE)

        _, faults = bring_in(app, api, assignment_line("bob", "owner"), member_line("ada"))

        assert faults == []
        assert {one.role for one in rows(Membership)} == {"member"}


class TestExport:
    def test_comes_back_into_an_empty_database(self, run, app, api, permission, clean, monkeypatch):
        monkeypatch.setattr("app.imports.export.PAGE", 2)
        bring_in(app, api, *PEOPLE, *ACCESS)
        exported = run("export", "acme")
        clean()
        create_permission("docs:read")

        ended = run("import", "-", input=exported.stdout)

        lines = [json.loads(line) for line in exported.stdout.splitlines()]
        assert ended.exit_code == 0, ended.stdout
        assert run("export", "acme").stdout == exported.stdout
        assert [line.get("key") for line in lines if line["type"] == "role"] == ["zeta", "alpha"]
        resources = [line["resource"]["id"] for line in lines if line["type"] == "resource"]
        assert resources == ["z", "a", "b"]
        assert len(rows(RoleAssignment)) == 3

    def test_leaves_out_what_has_ended_or_is_not_a_members_own(self, run, app, api):
        bring_in(app, api, *PEOPLE)
        tenant, member = row(Tenant), row(Membership, role="member")
        create_assignment(tenant, "viewer", membership_id=member.id, expires_at=utcnow())
        create_assignment(tenant, "billing", membership_id=member.id, source="idp")
        create_assignment(tenant, "viewer", group_id=create_group(tenant).id)

        assert "role_assignment" not in run("export", "acme").stdout
