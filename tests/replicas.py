"""The service on a real primary, reading from its standbys."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from flask import Flask

from app import create_app
from app.core.db import transactions
from app.core.db.replicas.reading import EXTENSION
from app.core.db.replicas.watch import Replica, Replicas, State
from app.dev.engines.instance import OWNER_ROLE
from app.dev.engines.postgres import program
from app.extensions import db
from tests import factories
from tests.cluster import Cluster, Node, cluster
from tests.running.serving import wait_until


class Replicated(NamedTuple):
    """A cluster with a migrated database, and an application to which the factories are bound."""

    cluster: Cluster
    environment: dict[str, str]
    app: Flask

    @property
    def replicas(self) -> Replicas:
        found: Replicas = self.app.extensions[EXTENSION]
        return found

    def replica(self, node: Node) -> Replica:
        """What the application knows of a standby."""
        (found,) = (one for one in self.replicas.all if one.name.endswith(f":{node.port}"))
        return found

    def wait_for(self, state: State, *nodes: Node) -> None:
        """Return once the application has noted this state of each of the nodes, or of all."""
        self.replicas.start()
        wanted = [self.replica(node) for node in nodes or self.cluster.standbys]
        wait_until(lambda: all(one.state is state for one in wanted))


@contextmanager
def replicated(
    environment: Mapping[str, str], *, standbys: int = 2, **settings: str
) -> Iterator[Replicated]:
    """The service with these ``settings``, on a primary and ``standbys`` of its own."""
    if not program("pg_basebackup").exists():
        pytest.skip("the embedded PostgreSQL has no pg_basebackup")
    with cluster(standbys) as nodes:
        complete = {
            **environment,
            "DATABASE_URL": nodes.primary.url(),
            "MIGRATION_DATABASE_URL": nodes.primary.url(OWNER_ROLE),
            "DATABASE_REPLICA_URLS": " ".join(node.url() for node in nodes.standbys),
            **settings,
        }
        app = create_app(complete)
        nodes.wait_for_replay()
        found = Replicated(nodes, complete, app)
        found.wait_for(State.OK)
        with factories.bound(app):
            yield found
        found.replicas.stop()
        with app.app_context():
            for engine in db.engines.values():
                engine.dispose()


@contextmanager
def messages() -> Iterator[list[tuple[str, str]]]:
    """The server and the name of each message that requests send in the block.

    The server is ``primary`` or a replica's bind. Those of the threads that watch are left out.
    """
    sent: list[tuple[str, str]] = []

    @contextmanager
    def note(name: str, _template: str) -> Iterator[None]:
        if name not in ("replicas.get_written", "replicas.get_state"):
            sent.append((transactions.current_transaction().bind or "primary", name))
        yield

    transactions.observers.append(note)
    try:
        yield sent
    finally:
        transactions.observers.remove(note)
