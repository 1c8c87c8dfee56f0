"""What ``flask doctor`` checks of the replicas from which requests may read."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
from flask import current_app

from app.cli.base import first_line
from app.cli.doctor.database import check_role
from app.cli.doctor.finding import Finding
from app.core.db.replica_watch import Replica, State
from app.core.db.replicas import EXTENSION, Replicas
from app.core.db.transactions import Transaction, transaction

FIXES = {
    State.LAGGING: "Until it has caught up, the primary answers. See the standby's log.",
    State.PRIMARY: "It is the primary, or has been promoted. It is not read until it is a standby.",
    State.UNAVAILABLE: "Check that it runs, and its URL in DATABASE_REPLICA_URLS.",
}


def check_replicas() -> Iterator[Finding]:
    """The findings on each replica, and on the role with which it is read; none without replicas."""
    replicas: Replicas | None = current_app.extensions.get(EXTENSION)
    if replicas is None:
        return
    replicas.watch.look_at_primary()
    for replica in replicas.all:
        replicas.watch.look_at(replica)
        check = f"replica {replica.name}"
        if replica.state is not State.OK:
            ok = replica.state is State.PRIMARY
            yield Finding(check, ok, replica.state.value, FIXES[replica.state])
            continue
        yield Finding(check, True, f"{replica.lag:.1f} s behind")
        yield _role(replica)


def _role(replica: Replica) -> Finding:
    check = f"role at {replica.name}"
    try:
        with transaction(Transaction(replica.bind, "BEGIN READ ONLY")):
            return check_role(check, "DATABASE_REPLICA_URLS")
    except psycopg2.Error as fault:
        return Finding(check, False, first_line(fault), FIXES[State.UNAVAILABLE])
