"""What a transaction refuses, and what it does not stop for."""

from __future__ import annotations

import pytest

from app.auth.guard import current_principal
from app.core import tenancy
from app.core.transactions import on_commit, transaction


class TestTransaction:
    @pytest.fixture(autouse=True)
    def _context(self, app):
        with app.app_context():
            yield

    def test_does_not_nest(self):
        with transaction(), pytest.raises(RuntimeError, match="does not nest"), transaction():
            pass

    def test_is_needed_to_wait_for_its_commit(self):
        with pytest.raises(RuntimeError, match="open transaction"):
            on_commit(print)

    def test_has_no_scope_and_nobody_until_they_are_entered(self):
        with transaction():
            with pytest.raises(RuntimeError, match="no tenant scope"):
                tenancy.current_scope()
            with pytest.raises(RuntimeError, match="no principal"):
                current_principal()

    def test_goes_on_after_a_callback_that_fails(self, caplog):
        called = []

        with transaction():
            on_commit(lambda: called.append(1))
            on_commit(lambda: called[1])
            on_commit(lambda: called.append(2))

        assert called == [1, 2]
        assert [record.message for record in caplog.records] == ["on_commit_failed"]
