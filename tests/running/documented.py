"""What the pages of docs/operations tell to do, so that the tests do just that."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2.extensions import connection

from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, Instance
from app.dev.engines.postgres import connect
from tests.running.serving import PROJECT

DOCS = PROJECT / "docs" / "operations"


def file(name: str) -> str:
    """An example file of the documentation."""
    return (DOCS / name).read_text()


def blocks(language: str, page: str, heading: str | None = None) -> list[str]:
    """The code of a page, or of one of its sections."""
    text = file(page) if heading is None else section(page, heading)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def section(page: str, heading: str) -> str:
    """The text of one section."""
    return file(page).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def superuser(instance: Instance, database: str = DATABASE) -> connection:
    """A session that may do everything, with no transaction around its statements."""
    return connect(instance, database)


def execute(instance: Instance, statement: str) -> None:
    session = superuser(instance)
    with session.cursor() as cursor:
        cursor.execute(statement)
    session.close()


@contextmanager
def role_settings(instance: Instance) -> Iterator[None]:
    """The settings that PgBouncer needs the role to have, for as long as the block."""
    (statements,) = blocks("sql", "running.md", "PgBouncer")
    execute(instance, statements)
    yield
    execute(instance, f"ALTER ROLE {APPLICATION_ROLE} RESET ALL")
