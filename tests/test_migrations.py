"""The files of functions and views, and the migrations that install them."""

import ast
import re
from collections import defaultdict
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine

from tests import database

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "migrations"
FUNCTIONS = {path.stem: path for path in sorted(FOLDER.glob("functions/*.sql"))}
VIEWS = {path.stem: path for path in sorted(FOLDER.glob("views/*.sql"))}
FILES = FUNCTIONS | VIEWS
MODULES = {str(path.relative_to(ROOT)): path for path in (ROOT / "app").rglob("*.py")}
DEFINITIONS = """
    SELECT oid::regproc::text, oid::regprocedure::text, pg_get_functiondef(oid) FROM pg_proc p
    WHERE pronamespace::regnamespace::text IN ('public', 'partitions', 'past') AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    )
    UNION ALL
    SELECT oid::regclass::text, reloptions::text, pg_get_viewdef(oid) FROM pg_class
    WHERE relnamespace::regnamespace::text IN ('public', 'partitions', 'past') AND relkind = 'v'
        AND (oid::regclass::text = ANY (%(views)s) OR NOT EXISTS (  -- those of past.define
            SELECT FROM pg_class t WHERE t.relname = pg_class.relname AND t.relkind IN ('r', 'p')
        ))
    ORDER BY 1, 2
"""


class TestFunctionsAndViews:
    def test_each_has_a_file_with_the_text_in_force(self, app):
        engine = create_engine(app.extensions["config"].migration_database_url, poolclass=NullPool)

        with closing(engine.raw_connection()) as connection, connection.cursor() as cursor:
            cursor.execute(DEFINITIONS, {"views": [*VIEWS]})
            migrated = cursor.fetchall()
            for path in FILES.values():
                cursor.execute(path.read_text())
            cursor.execute(DEFINITIONS, {"views": [*VIEWS]})
            written = cursor.fetchall()

        assert {name for name, *_ in migrated} == set(FILES)
        assert written == migrated

    @pytest.mark.parametrize("name", FILES)
    def test_its_header_names_its_callers(self, name):
        header, _, _ = FILES[name].read_text().partition("CREATE OR REPLACE")
        named = re.search(r"^-- Called by: (.+)$", header, re.MULTILINE)

        callers = {
            caller
            for caller, path in (FILES | MODULES).items()
            if caller not in (name, f"past.{name}")
            and any(has_call(text, name) for text in statements_of(path))
        }

        assert header.startswith("-- ")
        assert set(named[1].split(", ") if named else ()) == callers

    def test_a_text_that_was_replaced_stays_with_its_migration(self):
        replaced = {
            f"{name}.{revision}"
            for name, revisions in installations().items()
            for revision in (revisions[:-1] if name in FILES else revisions)
        }

        assert {path.stem for path in FOLDER.glob("superseded/*.sql")} == replaced

    def test_views_have_the_row_level_security_of_their_reader(self, app):
        views = "FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"

        found = database.query(f"SELECT relname, reloptions {views}")

        assert {name for name, options in found if "security_invoker=true" in options} == {
            name for name in VIEWS if "." not in name
        }

    def test_all_policies_have_the_same_condition(self, app):
        policies = database.query("SELECT policyname, tablename, cmd, qual FROM pg_policies")

        others = [row for row in policies if row[0] != "tenant_isolation"]
        assert len({qual for name, _, _, qual in policies if name == "tenant_isolation"}) == 1
        assert [row[:3] for row in others] == [("templates_are_readable", "roles", "SELECT")]


@cache
def statements_of(path: Path) -> list[str]:
    """The SQL texts of a file; in Python also the names of functions that SQLAlchemy calls."""
    text = path.read_text()
    if path.suffix == ".sql":
        return [re.sub(r"--.*", "", text)]
    nodes = list(ast.walk(ast.parse(text)))
    called = [f"{node.attr}(" for node in nodes if is_function_of_sqlalchemy(node)]
    return called + [node.value for node in nodes if is_text(node)]


def is_function_of_sqlalchemy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "func"


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def has_call(text: str, name: str) -> bool:
    """Whether a SQL text calls the function, or reads the view; ``text`` may be the view's name."""
    form = rf"\b{name}\(" if name in FUNCTIONS else rf"\b(FROM|JOIN) {name}\b|^{name}$"
    return name in text and re.search(form, text) is not None


def installations() -> dict[str, list[str]]:
    """The revisions that have installed each function and view, the oldest first."""
    found = defaultdict(list)
    for path in sorted(FOLDER.glob("versions/*.py")):
        for names in re.findall(r"install\(revision, ([^)]+)\)", path.read_text()):
            for name in re.findall(r'"(.+?)"', names):
                found[name].append(path.name.partition("_")[0])
    return found
