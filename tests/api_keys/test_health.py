"""The keys that expire soon, in /metrics."""

from datetime import timedelta

from app.core.clock import utcnow
from tests.factories import create_api_key, create_tenant
from tests.operations.test_metrics import samples


class TestMetrics:
    def test_counts_the_api_keys_that_expire_soon(self, api):
        now, day = utcnow(), timedelta(days=1)
        create_api_key(expires_at=now + 13 * day)
        create_api_key(create_tenant(), expires_at=now + 13 * day)
        create_api_key(expires_at=now + 15 * day)
        create_api_key(expires_at=now - day)
        create_api_key(expires_at=now + day, revoked_at=now)
        create_api_key()

        assert samples(api.get("/metrics").text)["api_keys_expiring",] == 2
