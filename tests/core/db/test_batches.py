"""Deleting many rows: small batches, each with its own commit."""

import pytest

from app.core.db import batches
from app.core.http import idempotency
from tests import database

ADD_KEYS = """
INSERT INTO idempotency_keys (scope, key, fingerprint, created_at)
SELECT 'scope', n::text, '', now() - interval '25 hours' FROM generate_series(1, 25) n
"""


@pytest.fixture
def keys(app, monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 10)
    database.execute(ADD_KEYS)


def left():
    return len(database.query("SELECT FROM idempotency_keys"))


class TestDeleteInBatches:
    def test_keeps_what_earlier_batches_did(self, app, keys):
        found = []

        def delete(limit):
            found.append(left())
            if len(found) == 3:
                raise ZeroDivisionError
            return idempotency.forget_expired(limit)

        with app.app_context(), pytest.raises(ZeroDivisionError):
            batches.in_batches(delete)

        assert found == [25, 15, 5]
        assert left() == 5
