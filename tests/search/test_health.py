"""Terms that are being built, in flask doctor."""

from app.core.db.transactions import transaction
from app.search import builder
from app.search.models import EntityType
from tests.cli.test_doctor import examine


class TestDoctor:
    def test_hints_at_terms_that_are_being_built(self, app, environment):
        with app.app_context(), transaction():
            builder.restart(EntityType.USER)

        found = examine(environment)[0]["search"]

        assert found["ok"]
        assert found["found"] == "being built: user 0 of 0"
        assert "flask search build" in found["fix"]
