"""Of gunicorn, psycopg2 and waitress the service uses what their documentation names."""

import ast
import inspect
import re
from functools import cache
from pkgutil import resolve_name

import pytest

from tests.test_architecture import ROOT, modules, tree_of

# Library -> page -> names. A name without a dot is an attribute, whatever has it.
DOCUMENTED = {
    "gunicorn": {
        "Settings, worker_class": "gunicorn.workers.base gunicorn.workers.base.Worker",
        "gunicorn.workers.base.Worker, docstrings and parameters": "cfg notify ppid sockets",
        "Settings, logger_class": "gunicorn.glogging.Logger error_log",
        "Settings, server hooks": "pid",
        "Settings": "threads",
        "Python, logging": "exception",
        "Python, os.environ": "get",
        # No page names these. All of gunicorn's own worker classes use them.
        "not documented": "alive max_requests wsgi",
    },
    "psycopg2": {
        "The module content": "psycopg2.DataError psycopg2.Error psycopg2.IntegrityError"
        " psycopg2.InterfaceError psycopg2.OperationalError psycopg2.ProgrammingError"
        " psycopg2.connect diag pgcode",
        "The connection class": "Error autocommit close commit cursor fileno get_backend_pid"
        " get_transaction_status info notices poll reset status",
        "The cursor class": "connection description execute fetchall fetchone mogrify name query"
        " rowcount",
        "psycopg2.errors": "psycopg2.errors.LockNotAvailable psycopg2.errors.QueryCanceled"
        " psycopg2.errors.ReadOnlySqlTransaction psycopg2.errors.UndefinedTable"
        " psycopg2.errors.UniqueViolation",
        "psycopg2.extensions": "psycopg2.extensions psycopg2.extensions.AsIs"
        " psycopg2.extensions.POLL_OK psycopg2.extensions.POLL_READ"
        " psycopg2.extensions.TRANSACTION_STATUS_IDLE psycopg2.extensions.connection"
        " psycopg2.extensions.TRANSACTION_STATUS_INERROR psycopg2.extensions.cursor"
        " psycopg2.extensions.new_type psycopg2.extensions.parse_dsn"
        " psycopg2.extensions.register_type psycopg2.extensions.set_wait_callback"
        " constraint_name host port",
        "psycopg2.sql": "psycopg2.sql psycopg2.sql.Identifier psycopg2.sql.SQL",
    },
    "waitress": {
        "waitress.create_server, docstring": "waitress.create_server",
        "asyncore, of which wasyncore is a copy": "waitress.wasyncore waitress.wasyncore.loop map",
        "Python, socket objects": "close family fileno getsockname socket",
        "Arguments to waitress.serve": "threads",
    },
}
OBJECTS = {
    "gunicorn": "workers.base glogging config",
    "psycopg2": "extensions:connection extensions:cursor extensions:ConnectionInfo"
    " extensions:Diagnostics errors:UniqueViolation",
    "waitress": "server channel task parser wasyncore",
}


@cache
def attributes_of(library: str) -> set[str]:
    """Public attributes of the library's objects; those of Python modules are in their sources."""
    found: set[str] = set()
    for one in (resolve_name(f"{library}.{name}") for name in OBJECTS[library].split()):
        is_source = inspect.ismodule(one)
        source = inspect.getsource(one) if is_source else ""
        found.update(re.findall(r"(?:self\.|def )(\w+)", source) if is_source else dir(one))
    return {name for name in found - set(dir(Exception)) if not name.startswith("_")}


def used(library: str, module: str, tree: ast.AST) -> set[str]:
    """What a module imports of the library, and the attributes in it that its objects may have."""
    paths: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            paths |= {one.asname or one.name: start + one.name for one in node.names}
    paths = {name: path for name, path in paths.items() if path.partition(".")[0] == library}
    if not paths and not (library == "psycopg2" and module.startswith("app.core.db")):
        return set()
    found = set(paths.values()) - {library}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            path = paths.get(ast.unparse(node.value))
            is_module = path is not None and inspect.ismodule(resolve_name(path))
            found |= {f"{path}.{node.attr}"} if is_module else {node.attr} & attributes_of(library)
    return found


@pytest.mark.parametrize("library", DOCUMENTED)
def test_only_documented_names_are_used(library):
    files = [*modules(), ("gunicorn.conf", ROOT / "gunicorn.conf.py")]
    found = {one for name, path in files for one in used(library, name, tree_of(path))}

    assert found == set(" ".join(DOCUMENTED[library].values()).split())
