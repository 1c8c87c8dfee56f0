"""``flask audit``."""

from app.core.actors import SYSTEM_CLI
from app.plans import assignments
from tests.database import platform_transaction
from tests.factories import create_preset, create_tenant


class TestList:
    def test_shows_what_an_assigned_plan_is(self, app):
        create_preset("pro")
        tenant = create_tenant()
        with platform_transaction():
            assignments.assign(
                tenant.id, plan_name="pro", until=None, reason="Pilot", actor=SYSTEM_CLI
            )

        ended = app.test_cli_runner().invoke(args=["audit", "list", "--tenant", tenant.slug])

        assert ended.exit_code == 0, ended.output
        assert 'plan_name: "pro"; until: null; reason: "Pilot"' in ended.stdout
