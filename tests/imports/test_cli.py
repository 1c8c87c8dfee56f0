"""``flask import``, ``flask imports`` and ``flask export``."""

import json
import random
import stat
import time
from datetime import timedelta
from uuid import UUID

import pytest

from app.audit.models import AuditEvent
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.imports.files import PIECE
from app.imports.models import Import, ImportPiece
from app.imports.work import work
from app.tenants.models import Tenant
from app.users.models import User
from tests.database import execute, row, rows
from tests.factories import create_override, create_preset, platform_token, preset_flag
from tests.imports.files import (
    as_file,
    bring_in,
    company,
    member_line,
    override_line,
    post,
    snapshot,
    subscription_line,
    tenant_line,
    user_line,
)

OLD = {
    "bp_status": "canceled", "plan_name": "other", "canceled_at": "2026-01-03T00:00:00Z",
    "cancel_at_period_end": False, "cancel_reason": "moved", "auto_renew": False,
}  # fmt: skip
COMPANY = [
    *company(
        subscription_line(source_timestamp="2026-01-02T00:00:00Z", billing_email="ap@example.com"),
        subscription_line("old", **OLD),
        primary_contact_email="ada@example.com",
    ),
    override_line("theme", None, preset_name="growth", expires_at="2999-01-01T00:00:00Z"),
]


@pytest.fixture
def run(app):
    def invoke(*words, **options):
        return app.test_cli_runner().invoke(args=[*map(str, words)], **options)

    return invoke


@pytest.fixture
def file(tmp_path):
    """Call it with lines for the path of a file of them."""

    def write(*lines):
        path = tmp_path / "lines.jsonl"
        path.write_bytes(as_file(*lines))
        return path

    return write


@pytest.fixture
def presets(app):
    return create_preset("growth", seats=5, theme=[]), create_preset("other", seats=1)


def random_lines(chance):
    """Lines about few tenants, people and subscriptions, some of them faulty."""

    def one():
        org_id, name = chance.choice(["org", "org", "two", "none"]), f"u{chance.randrange(250)}"
        match chance.randrange(12):
            case 0:
                return tenant_line(chance.choice(["org", "two"]), name=f"N{chance.randrange(3)}")
            case 1 | 2 | 3 | 4:
                email = chance.choice(
                    [f"{name}@example.com", f"u{chance.randrange(250)}@x.example"]
                )
                is_active = chance.random() < 0.8
                return user_line(name, org_id, email=email, is_active=is_active)
            case 5 | 6 | 7:
                role = chance.choice(["owner", "admin", "member"])
                return member_line(name, role, org_id, is_active=chance.random() < 0.8)
            case 8:
                return member_line(name, "member", org_id, idp_membership_id=f"m{name}")
            case 9:
                line = member_line(name, "viewer", org_id, idp_membership_id=f"m{name}")
                del line["idp_user_id"]
                return line
            case 10:
                plan = chance.choice(["growth", "free", "unknown"])
                return subscription_line(f"s{chance.randrange(5)}", org_id, plan_name=plan)
            case _:
                return chance.choice([b"x", {"type": "user"}, override_line("seats", 3)])

    return [tenant_line(), *(one() for _ in range(700))]


def without_ids(faults):
    return [
        {**fault, "errors": [{**entry, "ctx": None} for entry in fault["errors"]]}
        for fault in faults
    ]


class TestImport:
    def test_applies_a_file(self, run, file):
        ended = run("import", file(tenant_line(), user_line("ada")), "--json")

        shown = json.loads(ended.stdout)
        assert ended.exit_code == 0
        assert (shown["state"], shown["lines_done"], shown["faults"]) == ("completed", 2, [])
        assert row(User).created_by_user_id == SYSTEM_CLI.id

    def test_shows_faults_and_exits_with_1(self, run, file):
        ended = run("import", file(b"x", tenant_line(), user_line("ada", email="x", age=5)))

        assert ended.exit_code == 1
        assert "JSON decode error" in ended.stdout
        assert "email: value is not a valid email address" in ended.stdout
        assert "age: there is no such field" in ended.stdout
        assert len(rows(Tenant)) == 1

    def test_resumes_an_import(self, run, app, api):
        lines = [tenant_line(), *(user_line(f"u{number}") for number in range(600))]
        import_id = post(api, as_file(*lines)).get_json()["data"]["id"]
        with app.app_context():
            next(work(UUID(import_id)))

        ended = run("import", "--resume", import_id, "--json")

        assert ended.exit_code == 0
        assert json.loads(ended.stdout)["counts"]["user"]["created"] == 600

    @pytest.mark.parametrize(
        ("words", "code", "sentence"),
        [
            ((), 2, "Name a file, or an import with --resume."),
            (("--resume", "x", "--dry-run"), 2, "Name a file, or an import with --resume."),
            (("/nowhere",), 2, "No such file"),
            (("--resume", "x"), 1, "There is no import x."),
        ],
    )
    def test_refuses_in_one_sentence(self, run, words, code, sentence):
        ended = run("import", *words)

        assert (ended.exit_code, ended.stdout) == (code, "")
        assert sentence in ended.stderr

    def test_does_not_resume_a_completed_one(self, run, file):
        import_id = json.loads(run("import", file(tenant_line()), "--json").stdout)["id"]

        ended = run("import", "--resume", import_id)

        assert ended.exit_code == 1
        assert "This import is completed" in ended.stderr


class TestDryRun:
    def test_changes_nothing(self, run, file, presets):
        ended = run("import", file(*COMPANY), "--dry-run", "--json")

        shown = json.loads(ended.stdout)
        assert ended.exit_code == 0
        assert shown["counts"]["user"]["created"] == 2
        assert [rows(model) for model in (Tenant, User, Import, AuditEvent)] == [[], [], [], []]

    def test_finds_the_faults_of_an_import(self, run, file, app, api):
        bring_in(app, api, tenant_line(), user_line("ada"), member_line("ada", "owner"))
        lines = [member_line("ada"), user_line("eve", "gone"), user_line("bob", email="x"), b"x"]

        ended = run("import", file(*lines), "--dry-run", "--json")

        faults = json.loads(ended.stdout)["faults"]
        assert ended.exit_code == 1
        assert [fault["line"] for fault in faults] == [1, 2, 3, 4]
        assert faults[0]["errors"][0]["type"] == "last_owner"

    def test_says_what_the_import_then_does(self, run, file, presets):
        """Of lines about few rows, in any order, over more than one set of 500."""
        lines = random_lines(random.Random(1))

        dry = json.loads(run("import", file(*lines), "--dry-run", "--json").stdout)
        real = json.loads(run("import", file(*lines), "--json").stdout)

        assert real["lines_done"] == len(lines) > 500
        for name in ("lines_failed", "counts"):
            assert dry[name] == real[name], name
        assert without_ids(dry["faults"]) == without_ids(real["faults"])
        assert {kind for kind, found in real["counts"].items() if found["failed"]}


class TestExport:
    def test_into_the_same_database_changes_nothing(self, run, app, api, presets, tmp_path):
        bring_in(app, api, *COMPANY)
        before = snapshot()
        path = tmp_path / "acme.jsonl"

        exported = run("export", "acme", "--output", path)
        ended = run("import", path, "--json")

        assert (exported.exit_code, exported.stdout) == (0, "")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (ended.exit_code, snapshot()) == (0, before)

    def test_into_an_empty_database_gives_the_same_rows(self, run, app, api, presets, clean):
        bring_in(app, api, *COMPANY)
        exported = run("export", "acme")
        before = content()
        clean()
        create_preset("growth", seats=5, theme=[])
        create_preset("other", seats=1)

        ended = run("import", "-", input=exported.stdout)

        assert ended.exit_code == 0, ended.stdout
        assert content() == before
        assert run("export", "acme").stdout == exported.stdout

    def test_leaves_out_overrides_that_have_expired(self, run, app, api, presets):
        bring_in(app, api, *COMPANY[:2])
        create_override(row(Tenant), presets[0], "seats", 9, expires_at=utcnow())

        exported = run("export", "acme")

        assert "override" not in exported.stdout

    def test_as_of_an_earlier_moment_has_what_was_in_force_then(self, run, app, api):
        flags = [preset_flag("seats", 5), preset_flag("theme", [])]
        for name in ("growth", "other"):
            body = {"name": name, "flags": flags}
            made = api.post("/v1/billing/plans", token=platform_token(), json=body)
            assert made.status_code == 201
        bring_in(app, api, *COMPANY)
        end = utcnow() + timedelta(seconds=6)
        seats = override_line("seats", 9, preset_name="growth", expires_at=end.isoformat())
        bring_in(app, api, seats)
        api.sequence()
        then, moment = run("export", "acme"), utcnow()
        bring_in(app, api, tenant_line(name="Other"), user_line("new"))
        api.sequence()
        time.sleep(max((end - utcnow()).total_seconds(), 0))

        past = run("export", "acme", "--as-of", moment.isoformat())
        early = run("export", "acme", "--as-of", "2020-01-01")

        assert '"flag_key":"seats"' in then.stdout
        assert past.stdout == then.stdout
        assert '"flag_key":"seats"' not in run("export", "acme").stdout
        assert (early.exit_code, early.stdout) == (1, "")
        assert "Not Found" in early.stderr


class TestErasure:
    def test_finds_a_person_at_the_border_of_two_pieces(self, run, app, api):
        bring_in(app, api, tenant_line(), user_line("ada-of-long-name"))
        line = as_file(user_line("ada-of-long-name", email="new@example.com"))
        padding = b" " * (PIECE - line.index(b"of-long-name")) + b"\n"
        post(api, padding[:-1] + line)

        refused = run("users", "erase", "ada-of-long-name", "--yes")

        assert len(rows(ImportPiece)) == 2
        assert refused.exit_code == 1

    def test_waits_for_imports_about_the_person(self, run, app, api):
        bring_in(app, api, tenant_line(), user_line("ada"), user_line("eve"))
        post(api, as_file(user_line("ada"), {"type": "user"}))

        refused = run("users", "erase", "ada", "--yes")
        other = run("users", "erase", "eve", "--yes")
        pieces = len(rows(ImportPiece))
        execute("UPDATE imports SET finished_at = now()")
        erased = run("users", "erase", "ada", "--yes")

        assert (refused.exit_code, other.exit_code, erased.exit_code) == (1, 0, 0)
        assert "An import with lines about this person is still" in refused.stderr
        assert pieces == 1


def content():
    """The values of all rows without what is new for each row."""
    own = {"id", "tenant_id", "user_id", "plan_preset_id", "created_at", "updated_at", "version"}
    own |= {"created_by_user_id", "updated_by_user_id"}
    return [
        sorted(
            json.dumps(
                {name: value for name, value in one._asdict().items() if name not in own},
                default=str,
                sort_keys=True,
            )
            for one in found
        )
        for found in snapshot()
    ]
