"""Bases of the past, written without waiting for thousands of changes."""

from flask import Flask

from app.audit.models import AuditPosition
from app.history import bases
from tests import database


def add_bases(app: Flask, changes: int = 1) -> None:
    """Write the bases of all tenants that have so many changes since the last one."""
    database.execute("UPDATE event_feed SET ordered_position = last_position")
    with app.app_context():
        for tenant_id in {row.tenant_id for row in database.rows(AuditPosition)}:
            while bases.add(tenant_id, changes):
                pass
