"""The kinds of rows of which the search does not find all yet."""

from __future__ import annotations

from app.core.db.statements import Statement
from app.core.health import Finding

LIST_SEARCH_BUILDS = Statement(
    "search_builds.list_unsettled",
    "SELECT entity_type, done, total FROM search_builds WHERE NOT is_settled ORDER BY entity_type",
)


def check_builds() -> Finding:
    builds = LIST_SEARCH_BUILDS.all()
    if not builds:
        return Finding("search", True, "finds all rows")
    listed = ", ".join(f"{one.entity_type} {one.done} of {one.total}" for one in builds)
    fix = "A worker of the queue indexes builds the terms; flask search build does it at once."
    return Finding("search", True, f"being built: {listed}", fix)


CHECKS = {"search": check_builds}
