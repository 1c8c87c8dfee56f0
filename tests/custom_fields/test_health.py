"""Select fields without options, in flask doctor."""

from app.core.health import SHOWN
from tests.cli.test_doctor import examine
from tests.custom_fields.fields import create_field
from tests.factories import create_tenant


class TestDoctor:
    def test_hints_at_select_fields_without_options(self, app, environment):
        tenant, other = create_tenant(), create_tenant()
        for number in range(SHOWN + 1):
            create_field(tenant, field_key=f"size_{number:02}", field_type="select")
        create_field(other, field_key="colors", field_type="multi_select", options=[])
        create_field(other, field_key="shape", field_type="select", options=["round"])

        found = examine(environment)[0]["select fields"]

        first = " ".join(f"size_{number:02}" for number in range(SHOWN))
        assert found["ok"]
        assert f"{tenant.slug}: {first} …" in found["found"]
        assert f"{other.slug}: colors" in found["found"]
        assert "shape" not in found["found"]
        assert "options" in found["fix"]
