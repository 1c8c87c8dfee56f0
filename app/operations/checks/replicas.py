"""The doctor's checks of the replicas from which requests may read."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2

from app.core.db.replicas.watch import Replica, State
from app.core.db.transactions import Transaction, transaction
from app.core.errors import first_line
from app.core.health import Finding
from app.operations.checks.database import check_role
from app.operations.service import replicas

FIXES = {
    State.LAGGING: "Until it has caught up, the primary answers. See the standby's log.",
    State.PRIMARY: "It is the primary, or has been promoted. It is not read until it is a standby.",
    State.UNAVAILABLE: "Check that it runs, and its URL in DATABASE_REPLICA_URLS.",
}


def check_replicas() -> Iterator[Finding]:
    """The findings on each replica, and on the role with which it is read; none without replicas."""
    found = replicas()
    if found is None:
        return
    found.look_at_primary()
    for replica in found.all:
        found.look_at(replica)
        yield _state(replica)
        if replica.state is State.OK:
            yield _role(replica)


def check_watched_replicas() -> Iterator[Finding]:
    """The findings on each replica as this web process has last seen it."""
    found = replicas()
    yield from map(_state, found.all if found else ())


def _state(replica: Replica) -> Finding:
    check = f"replica {replica.name}"
    if replica.state is State.OK:
        return Finding(check, True, f"{replica.lag:.1f} s behind")
    return Finding(check, replica.state is State.PRIMARY, replica.state.value, FIXES[replica.state])


def _role(replica: Replica) -> Finding:
    check = f"role at {replica.name}"
    try:
        with transaction(Transaction(replica.bind, "BEGIN READ ONLY")):
            return check_role(check, "DATABASE_REPLICA_URLS")
    except psycopg2.Error as fault:
        return Finding(check, False, first_line(fault), FIXES[State.UNAVAILABLE])
