"""Holds and leases are exact while many threads take, settle, release and report them."""

import random
from itertools import chain

import pytest

from app.usage.models import UsageCounter, UsageHold
from tests import database
from tests.concurrency import at_once
from tests.factories import create_api_key, create_limits, create_tenant, limit_flag

THREADS = 16
LIMIT = 170
PER_THREAD = 15  # 240 units of which the limit allows 170


@pytest.fixture
def key(app):
    create_limits("free", limit_flag("calls", LIMIT, period="month"))
    return create_api_key(create_tenant(), ["usage:write"])


@pytest.fixture
def send(api, key):
    return lambda method, path, **body: api.request(
        method, f"/v1/usage/{path}", token=key, json=body or None
    )


def counter():
    row = database.row(UsageCounter)
    return row.used, row.held


class TestThreads:
    def test_hold_settle_and_consume_no_more_than_the_limit(self, send):
        def work():
            counted = 0
            for _ in range(PER_THREAD):
                taken = send("POST", "holds", feature="calls", amount=random.randint(1, 9))
                if taken.status_code == 409:
                    continue
                hold = taken.json["data"]
                amount = random.randint(0, hold["amount"])
                match random.randrange(3):
                    case 0:
                        send("DELETE", f"holds/{hold['id']}")
                    case 1:
                        settled = send("POST", f"holds/{hold['id']}/settle", amount=amount)
                        counted += settled.json["data"]["counted"]
                    case _:
                        consumed = send("POST", "consume", feature="calls", amount=amount)
                        counted += amount if consumed.status_code == 200 else 0
            return [counted]

        counted = sum(chain(*at_once([work] * 8)))

        used, held = counter()
        rows = database.rows(UsageHold, state="open")
        assert used == counted
        assert used + held <= LIMIT
        assert held == sum(row.amount for row in rows)

    def test_settle_one_hold_once(self, send):
        hold = send("POST", "holds", feature="calls", amount=9).json["data"]
        path = f"holds/{hold['id']}/settle"

        same = at_once([lambda: send("POST", path, amount=5)] * 8)
        other = send("POST", path, amount=4)

        assert {answer.status_code for answer in same} == {200}
        assert len({answer.text for answer in same}) == 1
        assert other.status_code == 409
        assert counter() == (5, 0)

    def test_settle_or_release_a_hold_but_not_both(self, send):
        for _ in range(5):
            hold = send("POST", "holds", feature="calls", amount=9).json["data"]

            answers = at_once(
                [
                    lambda hold=hold: send("POST", f"holds/{hold['id']}/settle", amount=1),
                    lambda hold=hold: send("DELETE", f"holds/{hold['id']}"),
                ]
            )

            assert sorted(answer.status_code for answer in answers)[1] == 409

        counted = [row.counted for row in database.rows(UsageHold)]
        assert counter() == (sum(counted), 0)

    def test_use_of_their_leases_no_more_than_the_limit(self, send):
        def work():
            used = 0
            for _ in range(3):
                taken = send("POST", "leases", feature="calls", amount=20)
                if taken.status_code == 409:
                    break
                lease, here = taken.json["data"], 0
                for _ in range(4):
                    here += random.randint(0, lease["amount"])
                    path = f"leases/{lease['id']}"
                    lease = send("PUT", path, used=here, amount=random.randint(1, 20)).json["data"]
                send("PUT", f"leases/{lease['id']}", used=here, amount=0)
                used += here
            return [used]

        used = sum(chain(*at_once([work] * 8)))

        assert counter() == (used, 0)
        assert used <= LIMIT
