"""Rate limits in the processes that gunicorn forks."""

import time
from collections import Counter

from app.core.http.rate_counts import INTERVAL
from tests.factories import create_member, create_tenant
from tests.running.serving import answers, web_server

LIMIT = 20


class TestWebProcesses:
    def test_share_the_limit_of_a_credential(self, app, environment, tmp_path):
        limits = {"RATELIMIT_ENABLED": "1", "RATELIMIT_DEFAULT": f"{LIMIT}/month"}
        _, _, token = create_member(create_tenant())
        headers = {"Authorization": f"Bearer {token}"}

        with web_server({**environment, **limits}, tmp_path) as (port, _):
            rounds = []
            for pause in (0, INTERVAL + 0.5, INTERVAL + 0.5):
                time.sleep(pause)
                rounds.append(Counter(answers(port, "/v1/users", headers) for _ in range(LIMIT)))

        assert LIMIT <= sum(found[200] for found in rounds) <= 2 * LIMIT
        assert rounds[-1] == {429: LIMIT}
