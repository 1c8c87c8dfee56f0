"""A real primary and its streaming standbys, from the private engine's own programs.

Each node has a folder, a socket folder and a loopback port of its own. Nodes fail as machines do:
:meth:`Node.kill` takes all its processes at once, and :meth:`Node.freeze` leaves its connections
open without an answer.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg2
from psycopg2.extensions import connection

from app.dev.engines.account import server_account
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, DevError, Instance
from app.dev.engines.postgres import SUPERUSER, Postgres, program
from tests import migrated
from tests.ports import free_port
from tests.running.serving import HOST, READY_SECONDS, wait_until

SETTINGS = {
    "listen_addresses": HOST,
    "fsync": "off",  # what a killed process has written stays with the operating system
    "hot_standby": "on",
    "wal_retrieve_retry_interval": "200ms",
    "wal_receiver_timeout": "5s",
    "wal_sender_timeout": "5s",
}


class Node(Postgres):
    """One PostgreSQL server; :meth:`Cluster.promote` and :meth:`Cluster.rejoin` change its role."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        instance = Instance.at(folder)
        account = server_account(instance.postgres_data, program("postgres"))
        super().__init__(instance, account=account, durable=True)
        self.title = folder.name  # its name in synchronous_standby_names
        self.port = free_port()
        self.settings = {**SETTINGS, **settings, "cluster_name": self.title, "port": str(self.port)}

    def command(self) -> list[str | Path]:
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        return [*super().command(), *options]

    def answers(self) -> bool:
        with suppress(psycopg2.OperationalError):
            self.connect("postgres").close()
            return True
        return False

    def connect(self, database: str = DATABASE) -> connection:
        """A session of the superuser, in autocommit mode."""
        session = psycopg2.connect(
            host=HOST, port=self.port, user=SUPERUSER, dbname=database, connect_timeout=5
        )
        session.autocommit = True
        return session

    def execute(self, statement: str, *values: Any, database: str = "postgres") -> list[Any]:
        """The rows of one statement of the superuser, outside a transaction."""
        with closing(self.connect(database)) as session, session.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def url(self, role: str = APPLICATION_ROLE) -> str:
        """The service's database on this node alone."""
        return f"postgresql://{role}@{HOST}:{self.port}/{DATABASE}"

    def is_primary(self) -> bool:
        return not self.execute("SELECT pg_is_in_recovery()")[0][0]

    def position(self) -> int:
        """The WAL position, in bytes, up to which a primary has written or a standby received."""
        return self._position(
            "CASE WHEN pg_is_in_recovery()"
            " THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())"
            " ELSE pg_current_wal_lsn() END"
        )

    def replayed(self) -> int:
        """The WAL position, in bytes, whose changes a query on a standby sees."""
        return self._position("pg_last_wal_replay_lsn()")

    def _position(self, expression: str) -> int:
        return int(self.execute(f"SELECT ({expression}) - '0/0'::pg_lsn")[0][0] or 0)

    def pause_replay(self) -> None:
        """A standby still receives changes afterwards, but queries do not see them."""
        self.execute("SELECT pg_wal_replay_pause()")
        state = "SELECT pg_get_wal_replay_pause_state()"
        wait_until(lambda: self.execute(state) == [("paused",)])

    def resume_replay(self) -> None:
        self.execute("SELECT pg_wal_replay_resume()")

    def freeze(self) -> None:
        """Stop all its processes where they are; their connections stay open."""
        for process in self._suspended()[1:]:
            process.suspend()

    def unfreeze(self) -> None:
        for process in reversed(self._suspended()):
            process.resume()

    def kill(self) -> None:
        """End all its processes at once, without a chance to say or write anything."""
        for process in reversed(self._suspended()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        super().stop()

    def stop(self) -> None:
        self.unfreeze()
        super().stop()

    def _suspended(self) -> list[psutil.Process]:
        """The postmaster, which is suspended so that it starts no others, and its children."""
        postmaster = self.process()
        if postmaster is None:
            return []
        postmaster.suspend()
        return [postmaster, *postmaster.children(recursive=True)]

    def follow(self, primary: "Node") -> None:
        """Be a standby of ``primary``, at once or from the next start."""
        source = f"host={HOST} port={primary.port} user={SUPERUSER} application_name={self.title}"
        if self.process() is not None:
            self.execute(f"ALTER SYSTEM SET primary_conninfo = '{source}'")
            self.execute("SELECT pg_reload_conf()")
            return
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{source}'\n")
        (self.data / "standby.signal").touch()

    def copy(self, source: "Node") -> None:
        """Replace the data by a new base backup of ``source``."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.account.own(self.data)
        options = ["--checkpoint=fast", "--pgdata", self.data]
        self._run("pg_basebackup", *options, "--dbname", source.url(SUPERUSER))

    def rewind(self, source: "Node") -> None:
        """Undo what ``source`` does not have, as after a promotion; DevError if that cannot be."""
        source.execute("CHECKPOINT")  # pg_rewind reads the new timeline from the control file
        server = f"host={HOST} port={source.port} user={SUPERUSER} dbname=postgres"
        self._run("pg_rewind", "--target-pgdata", self.data, "--source-server", server)

    def _run(self, name: str, *options: str | Path) -> None:
        process = self.launch([program(name), *options, "--no-sync"], folder=self.data)
        if process.wait() != 0:
            raise DevError(f"{name} failed: {self.last_fault()}")


class Cluster:
    """A primary and its standbys."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.primary = nodes[0]

    @property
    def standbys(self) -> list[Node]:
        """All nodes but the primary, running or not."""
        return [node for node in self.nodes if node is not self.primary]

    def start(self) -> None:
        """Start the primary with the migrated database, then the standbys."""
        migrated.prepare(self.primary.instance.folder)
        self.primary.start()
        # pg_rewind needs old WAL. It recovers a killed node with the settings of the data folder.
        self.primary.execute("ALTER SYSTEM SET wal_keep_size = '512MB'")
        self.primary.execute("SELECT pg_reload_conf()")
        for node in self.standbys:
            node.copy(self.primary)
            node.follow(self.primary)
            node.start()
        self.wait_for_standbys()

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def url(self, role: str = APPLICATION_ROLE) -> str:
        """The service's database on whichever of the nodes is the primary."""
        hosts = ",".join(f"{HOST}:{node.port}" for node in self.nodes)
        return f"postgresql://{role}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def replicate_synchronously(self, number: int = 1) -> None:
        """Each commit waits for ``number`` of the standbys; 0 for none."""
        names = ", ".join(node.title for node in self.nodes)
        wanted = f"ANY {number} ({names})" if number else ""
        for node in self.nodes:
            if node.process() is not None:
                node.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{wanted}'")
                node.execute("SELECT pg_reload_conf()")
        self.wait_for_standbys("quorum" if number else "async")

    def wait_for_standbys(self, state: str = "%") -> None:
        """Return once each running standby streams from the primary, with this ``sync_state``."""
        running = sum(node.process() is not None for node in self.standbys)
        streaming = (
            "SELECT count(*) FROM pg_stat_replication"
            " WHERE state = 'streaming' AND sync_state LIKE %s"
        )
        wait_until(lambda: self.primary.execute(streaming, state)[0][0] >= running)

    def wait_for_replay(self) -> None:
        """Return once queries on each running standby see what the primary has committed."""
        target = self.primary.position()
        running = [node for node in self.standbys if node.process() is not None]
        wait_until(lambda: all(node.replayed() >= target for node in running))

    def furthest(self) -> Node:
        """The standby that has received most."""
        running = [node for node in self.standbys if node.process() is not None]
        return max(running, key=Node.position)

    def promote(self, node: Node) -> None:
        """``node`` is the primary afterwards, and the other standbys follow it."""
        others = [one for one in self.standbys if one is not node and one.process() is not None]
        assert node.execute(f"SELECT pg_promote(wait_seconds => {READY_SECONDS})") == [(True,)]
        self.primary = node
        for other in others:
            other.follow(node)

    def rejoin(self, node: Node) -> str:
        """A killed or stopped node follows the primary; ``rewound`` or ``copied`` says how."""
        how = "rewound"
        try:
            node.rewind(self.primary)
        except DevError:
            how = "copied"
            node.copy(self.primary)
        node.follow(self.primary)
        node.start()
        return how


@contextmanager
def cluster(standbys: int = 2, **settings: str) -> Iterator[Cluster]:
    """A running primary and its ``standbys``, with further ``settings`` of PostgreSQL.

    Their database is migrated and empty. They replicate asynchronously until
    :meth:`Cluster.replicate_synchronously`.
    """
    folder = Path(tempfile.mkdtemp(prefix="controlplane-cluster-"))
    folder.chmod(0o755)  # the nodes' account must get in where root runs this
    found = Cluster([Node(folder / f"node{number}", settings) for number in range(1 + standbys)])
    try:
        found.start()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder)
