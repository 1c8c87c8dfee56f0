"""Tables on a terminal and in a pipe."""

import io
import json
from contextlib import redirect_stdout
from datetime import timedelta

import click
import pytest

from app.core.clock import rfc3339, utcnow
from app.surfaces.commands.output import print_fields, print_rows
from tests.factories import create_join_request, create_subscription, create_tenant, create_user

WIDE = {"id": "1" * 36, "tenant_id": "2" * 36, "name": "Ada\N{ESCAPE}[2J", "note": None}


class Terminal(io.StringIO):
    """A terminal as standard output."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def shown(print_to_terminal, *words, **options):
    """What a terminal gets. Standard output is replaced here, because pytest replaces it too."""
    with redirect_stdout(Terminal()) as terminal:
        print_to_terminal(*words, **options)
    return terminal.getvalue()


class TestOnATerminal:
    def test_a_table_that_does_not_fit_is_a_block_for_each_row(self):
        wide = {**WIDE, "note": "x" * 80}

        printed = shown(print_rows, [wide, wide], list(wide), as_json=False)

        told = f"id:        {'1' * 36}\ntenant_id: {'2' * 36}\nname:      Ada [2J\nnote:      "
        block = f"{told}{'x' * 80}\n\n"
        assert printed == block * 2

    @pytest.mark.parametrize("columns", [80, 200])
    def test_lists_times_and_ids_give_way_to_a_row_in_one_line(self, monkeypatch, capsys, columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        row = {
            "id": "1" * 36,
            "name": "a",
            "roles": ["x" * 60],
            "user_id": "2" * 36,
            "ends_at": "x",
        }

        printed = shown(print_rows, [row, row], list(row), as_json=False)

        assert len(printed.splitlines()) == 6
        assert ("xx…" in printed, "1" * 36 in printed) == (columns == 80, columns == 200)
        assert ("--json" in capsys.readouterr().err) == (columns == 80)

    def test_other_columns_give_way_to_an_id_that_commands_need(self):
        row = {"id": "1" * 36, **dict.fromkeys("abcd", "x" * 15)}

        printed = shown(print_rows, [row, row], list(row), as_json=False, keeps_id=True)

        assert f"│ {'1' * 36} │ {'x' * 15} │ {'x' * 15} │\n" in printed

    def test_texts_are_wrapped_and_times_shortened_before_a_table_becomes_blocks(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "100")
        long_ago = rfc3339(utcnow() - timedelta(days=3, seconds=9))
        row = {"id": "1" * 36, "at": long_ago, "error": None, "change": "one two " * 9}

        printed = shown(print_rows, [row, row], list(row), as_json=False)

        assert f"│ {'1' * 36} │ 3 days ago │ one two one" in printed
        assert "error" not in printed
        assert max(map(len, click.unstyle(printed).splitlines())) <= 100

    def test_a_table_that_fits_is_a_table(self):
        printed = shown(print_rows, [WIDE], ["id", "name"], as_json=False)

        assert f"│ {WIDE['id']} │ Ada [2J │" in printed

    def test_a_row_with_a_long_value_is_a_block(self):
        printed = shown(print_fields, {"key": "theme", "value": "x" * 80})

        assert printed == f"key:   theme\nvalue: {'x' * 80}\n\n"


class TestInAPipe:
    def test_every_row_is_a_line(self, capsys):
        print_rows([WIDE, WIDE], list(WIDE), as_json=False)

        lines = [line for line in capsys.readouterr().out.splitlines() if WIDE["id"] in line]
        assert len(lines) == 2
        assert all(WIDE["tenant_id"] in line for line in lines)

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"is_active": (True, False), "version": (1, 2)}, "is_active: true → false"),
            (
                {
                    "id": (None, "1"),
                    "email": (None, "a"),
                    "x": (None, ""),
                    "tenant_id": (None, "2"),
                },
                'created; email: "a"',
            ),
            ({"id": ("1", None), "created_at": ("2", None)}, "deleted"),
            ({}, "no net change"),
        ],
    )
    def test_a_change_has_the_fields_that_differ(self, capsys, changes, text):
        row = {
            "actions": ["user.updated"],
            "changes": {
                name: {"before": before, "after": after}
                for name, (before, after) in changes.items()
            },
        }

        print_rows([row], ["changes"], as_json=False)

        assert capsys.readouterr().out == f"changes\n{text}\n"

    def test_values_are_whole_and_have_tabs_between_them(self, capsys):
        print_rows([{"id": "1", "name": "x" * 10_000 + "\t"}], ["id", "name"], as_json=False)

        assert capsys.readouterr().out == f"id\tname\n1\t{'x' * 10_000} \n"


class TestLists:
    def list_users(self, app, *words):
        return app.test_cli_runner().invoke(args=["users", "list", *words])

    def test_say_on_standard_error_that_there_are_no_rows(self, app):
        ended = self.list_users(app)

        assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "No rows.\n")

    def test_print_an_empty_json_list(self, app):
        ended = self.list_users(app, "--json")

        assert (ended.stdout, ended.stderr) == ("[]\n", "")

    @pytest.mark.parametrize("words", [(), ("--json",)])
    def test_say_on_standard_error_that_rows_are_left_out(self, app, words, tenant):
        for _ in range(2):
            create_user(tenant)

        cut, all_of_them = (self.list_users(app, "--limit", limit, *words) for limit in "12")

        assert cut.stderr.startswith("There are more rows: give --all, or --cursor ")
        assert all_of_them.stderr == ""

    def test_follow_all_pages_with_progress_only_on_a_terminal(self, app, tenant):
        ids = [str(create_user(tenant).id) for _ in range(5)]

        ended = self.list_users(app, "--limit", "2", "--all", "--json")

        assert [one["id"] for one in json.loads(ended.stdout)] == ids
        assert ended.stderr == ""

    def test_go_on_after_a_cursor(self, app, tenant):
        ids = [str(create_user(tenant).id) for _ in range(2)]

        told = self.list_users(app, "--limit", "1").stderr
        ended = self.list_users(app, "--cursor", told.split()[-1].rstrip("."), "--json")

        assert [one["id"] for one in json.loads(ended.stdout)] == ids[1:]

    def test_of_work_have_the_command_of_each_list_that_is_not_empty(self, app, tenant):
        create_subscription(tenant, bp_status="past_due")
        create_join_request(tenant)
        run = app.test_cli_runner().invoke

        printed = run(args=["operations", "work"]).stdout
        as_json = run(args=["operations", "work", "--json"]).stdout

        assert "\tsubscriptions list --status-class past_due\n" in printed
        assert "\tjoin-requests list" in printed
        assert all("\t0\t" not in line for line in printed.splitlines())
        assert "/v1/" not in printed
        assert 0 in [one["count"] for one in json.loads(as_json)]

    def test_of_the_past_have_no_columns_of_what_is_included(self, app):
        create_user(create_tenant(slug="acme"))

        ended = self.list_users(app, "--as-of", rfc3339(utcnow()))

        assert (ended.exit_code, "tenant.slug" in ended.stdout) == (0, False)

    def test_have_columns_of_what_is_included(self, app):
        create_user(create_tenant(slug="acme"))

        ended = self.list_users(app)

        assert "tenant.slug" in ended.stdout
        assert "acme" in ended.stdout


class TestOneRow:
    def test_has_a_table_for_each_list_of_rows(self, capsys):
        print_fields({"state": "done", "empty": [], "faults": [{"line": 1}, {"line": 2, "x": 3}]})

        printed = capsys.readouterr().out
        assert "\nfaults:\n" in printed
        assert "\n2\t3\n" in printed
        assert "\nempty\t[]\n" in printed

    def test_has_the_distance_of_times_on_a_terminal(self, capsys):
        row = {"until": rfc3339(utcnow() + timedelta(days=13)), "name": "2026"}

        print_fields(row)
        printed = shown(print_fields, row)

        assert "(in 13 days)" in printed
        assert capsys.readouterr().out.splitlines()[1] == f"until\t{row['until']}"

    def test_has_counts_in_words(self, capsys):
        print_fields({"counts": {"users": {"updated": 3, "removed": 1}, "roles": {"created": 2}}})

        assert "users: 3 updated, 1 removed; roles: 2 created\n" in capsys.readouterr().out
