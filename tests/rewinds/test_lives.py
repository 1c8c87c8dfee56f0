"""Random lives of three tenants, one of which is rewound: its exports are those of then."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from app.rewinds import work
from app.rewinds.kinds import KINDS, LEFT
from tests import database
from tests.factories import platform_token
from tests.history import exports
from tests.history.life import Life
from tests.history.test_reading import LIVES

REFUSED = {"last_owner"}  # there was none then
STAMPS = {"version", "updated_at", "updated_by_user_id"}  # of the last change


def left_of(done, kind):
    """The codes of each row of a kind that the rewind has left out."""
    entries = [(one["id"], one["code"]) for one in done["left_out"] if one["kind"] == kind]
    return {row_id: {code for each, code in entries if each == row_id} for row_id, _ in entries}


def check_is(now, then, before, done):
    """The exports are those of then, but for what may not come back."""
    for name in now.keys() - {how.model.__tablename__ for how in KINDS.values()} - {exports.LINES}:
        assert now[name] == before[name]  # nothing else has changed
    for kind in KINDS:
        check_rows(kind, *(exports.by_id(kind, each) for each in (now, then, before)), done)
    check_lines(now[exports.LINES], then[exports.LINES], done)


def check_rows(kind, now, then, before, done):
    left, how = left_of(done, kind), KINDS[kind]
    assert set().union(*left.values()) <= {*LEFT, *REFUSED}
    for row_id, was in then.items():
        if left.get(row_id, set()) - set(LEFT):
            assert now.get(row_id) == before.get(row_id)
            continue
        codes = how.left_of(SimpleNamespace(**was)) if row_id in left else {}
        stays = {name for name, code in codes.items() if code in left[row_id]}
        differs = {name for name, value in now[row_id].items() if value != was[name]}
        assert differs <= STAMPS | stays
        assert now[row_id]["version"] >= was["version"]
    for row_id in now.keys() - then.keys() - left.keys():  # made since then, and cannot be deleted
        assert how.is_removed(SimpleNamespace(**now[row_id]))


def check_lines(now, then, done):
    """The lines are those of these rows."""
    for kind, how in KINDS.items():
        type_ = f'{{"type":"{how.target_type}",'
        lines, old = ({one for one in each if one.startswith(type_)} for each in (now, then))
        if not left_of(done, kind):
            assert old <= lines
            added = [json.loads(line) for line in lines - old]
            assert all(
                one.get("is_active") is False or one.get("bp_status") == "canceled" for one in added
            )


@pytest.mark.parametrize("seed", range(LIVES * 2))
def test_the_tenant_is_what_it_was(api, position, go_back, seed):
    life = Life(api, seed, subject="life")
    rewound, *others = (one["id"] for one in life.tenants)
    seen = []
    for _ in range(4):
        for _ in range(life.random.randint(5, 30)):
            life.change()
        seen.append((position(), exports.read(rewound)))
    of_others = [exports.read(other) for other in others]

    for to, then in seen[2::-1]:
        before = exports.read(rewound)
        done = go_back(rewound, to)
        assert done["state"] == "completed"
        check_is(exports.read(rewound), then, before, done)
        preview = life.call("POST", f"/v1/tenants/{rewound}/rewind", {"to": to})
        assert preview["counts"] == {} or done["left_out"]

        after = exports.read(rewound)
        back = go_back(rewound, done["position"])  # a rewind is taken back by a rewind
        check_is(exports.read(rewound), before, after, back)

    assert [exports.read(other) for other in others] == of_others
    assert exports.read(rewound, position()) == exports.read(rewound)


def test_a_writer_meanwhile_loses_nothing(
    api, call, tenant, add_user, position, go_back, monkeypatch
):
    """Each change is refused with 412, or is one step between the states before and after it."""
    monkeypatch.setattr(work, "SLICE", 1)
    users = [add_user(f"u{number}", first_name="First") for number in range(12)]
    to = position()
    for user in users[:8]:
        call("PATCH", f"/v1/users/{user}", {"first_name": "Changed"})
    tags = dict.fromkeys(users, "")
    written, is_done = [], []

    def write(user, name):
        sent = {"token": platform_token(), "headers": {"If-Match": tags[user]}}
        answer = api.patch(f"/v1/users/{user}", json={"last_name": name}, **sent)
        assert answer.status_code in (200, 412), answer.text
        if answer.status_code == 200:
            tags[user] = answer.headers["ETag"]
            written.append((user, name))
        return answer.status_code

    def read(user):
        tags[user] = api.get(f"/v1/users/{user}", token=platform_token()).headers["ETag"]

    def write_all():
        number = 0
        while not is_done or number < len(users):
            user = users[number % len(users)]
            if write(user, f"n{number}") == 412:
                read(user)
            number += 1

    for user in users:
        read(user)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all)
        done = go_back(tenant, to)
        is_done.append(True)
        writing.result()

    assert (done["state"], done["left_out"]) == ("completed", [])
    last = position()
    steps = database.query(
        "SELECT target_id, before ->> 'last_name' AS before, after ->> 'last_name' AS after"
        " FROM past.trail WHERE target_type = 'user' AND after -> 'last_name' IS NOT NULL"
        " ORDER BY position, number"
    )
    now = exports.by_id("users", exports.read(tenant))
    for user in users:
        names = [(one.before, one.after) for one in steps if one.target_id == user]
        assert [before for before, _ in names[1:]] == [after for _, after in names[:-1]]
        assert now[user]["last_name"] == names[-1][1]
        assert [name for _, name in names if name] == [name for one, name in written if one == user]
    assert {now[user]["first_name"] for user in users} == {"First"}
    assert exports.read(tenant, last) == exports.read(tenant)
