"""Functions and views: one file each, with the text in force; a migration installs it.

To change one, copy its file to ``superseded/<name>.<revision>.sql``, with the revision of the
migration that installed it. Then edit the file, and install it in a new migration. So each earlier
migration still installs the text that it did.
"""

from pathlib import Path

from alembic import op

FOLDER = Path(__file__).parent


def install(revision, *names):
    """Create or replace functions and views by the texts of a revision, in this order."""
    for name in names:
        op.execute(path_of(name, revision).read_text())


def path_of(name, revision):
    """The file of a function or view with the text that this revision has installed."""
    superseded = FOLDER / "superseded" / f"{name}.{revision}.sql"
    function = FOLDER / "functions" / f"{name}.sql"
    view = FOLDER / "views" / f"{name}.sql"
    return next(path for path in (superseded, function, view) if path.exists())
