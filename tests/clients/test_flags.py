"""``controlplane.flags``: a program has a tenant's flags in its memory."""

import pytest

from app.auth.permissions import Permission
from tests.conftest import serving
from tests.factories import create_api_key, create_preset, create_tenant, platform_token
from tests.ports import free_port
from tests.running.serving import HOST, wait_until
from tests.streams.support import kill, sequencing, stream_process

READ = [Permission.FLAGS_READ]


@pytest.fixture
def tenant(app):
    create_preset("free", beta=False, color="red", nothing=None)
    return create_tenant()


@pytest.fixture
def stream_port():
    return free_port()


@pytest.fixture
def url(app, with_limits, stream_port):
    """The service, whose answers name the stream process."""
    with serving(with_limits(STREAM_URL=f"http://{HOST}:{stream_port}")) as url:
        yield url


@pytest.fixture
def flags_of(importable, url):
    made = []

    def make(token, **context):
        from controlplane.flags import Flags

        made.append(Flags(url, token, **context))
        return made[-1]

    yield make
    for one in made:
        one.close()


def set_flag(api, tenant, value):
    path = f"/v1/billing/flags/overrides?tenant_id={tenant.id}"
    body = {"flag_key": "beta", "flag_value": value}
    assert api.post(path, token=platform_token(), json=body).status_code == 201


class TestFlags:
    def test_are_read_at_once(self, flags_of, tenant):
        flags = flags_of(create_api_key(tenant, READ))
        others = flags_of(create_api_key(None, READ), tenant_id=str(tenant.id))

        for known in (flags, others):
            assert known.get("beta", True) is False
            assert known.get("color") == "red"
            assert known.get("nothing", 7) == 7
            assert known.get("unknown", "x") == "x"

    def test_of_a_refused_credential_are_an_error(self, flags_of, tenant):
        from controlplane import ApiError

        with pytest.raises(ApiError) as refused:
            flags_of("sk_unknown")

        assert refused.value.status == 401

    def test_of_an_unavailable_service_are_the_defaults(self, importable):
        from controlplane.flags import Flags

        flags = Flags(f"http://{HOST}:{free_port()}", "sk_any")
        flags.close()

        assert flags.get("beta", True) is True

    def test_follow_changes_also_after_the_stream_has_ended(
        self, app, api, environment, flags_of, tenant, stream_port, tmp_path
    ):
        with sequencing(app):
            with stream_process(environment, tmp_path, port=stream_port) as (_, process):
                flags = flags_of(create_api_key(tenant, READ))
                set_flag(api, tenant, True)
                wait_until(lambda: flags.get("beta"), 20)
                kill(process)
            with stream_process(environment, tmp_path, port=stream_port):
                override = api.get(
                    f"/v1/billing/flags/overrides?tenant_id={tenant.id}", token=platform_token()
                ).json["data"][0]
                path = f"/v1/billing/flags/overrides/{override['id']}"
                api.patch(path, token=platform_token(), json={"flag_value": False})
                wait_until(lambda: not flags.get("beta"), 20)
