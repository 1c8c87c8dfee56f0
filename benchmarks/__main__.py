"""``python -m benchmarks``: compare the service with three programs that do the same work."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.items import ITEMS
from benchmarks.stage import Stage, stage


def main() -> None:
    arguments = parse()
    COMMANDS[arguments.command](arguments)


def parse() -> argparse.Namespace:
    names = [item.name for item in ITEMS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("command", nargs="?", default="compare", choices=COMMANDS)
    parser.add_argument("--items", nargs="+", choices=names, default=names)
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each run of wrk")
    parser.add_argument("--tenants", type=int, default=1_000, help="with a hundred users each")
    parser.add_argument(
        "--users",
        type=int,
        default=1_000_000,
        help="of the search, of the imported file, of the tenant to delete",
    )
    parser.add_argument("--audit-rows", type=int, default=20_000_000, help="of the large tables")
    parser.add_argument("--webhook-events", type=int, default=10_000_000, help="the same")
    parser.add_argument(
        "--large", action="store_true", help="access with ten million assignments of roles"
    )
    parser.add_argument("--folder", type=Path, help="keep the engines' data here, to use it again")
    parser.add_argument("--publish", action="store_true", help="put the tables into README.md")
    return parser.parse_args()


def compare(arguments: argparse.Namespace) -> None:
    """Print the tables."""
    from benchmarks import report
    from benchmarks.compare import compare

    items = [item for item in ITEMS if item.name in arguments.items]
    times = {"rounds": arguments.rounds, "seconds": arguments.seconds}
    with opened(arguments.folder, arguments.tenants, 100) as ready:
        results = compare(ready, items, connections=arguments.connections, **times, say=print)
        text = report.tables(ready, results, items, **times)
    if arguments.publish:
        report.publish(text)
    print(text)


def calls(arguments: argparse.Namespace) -> None:
    """Print the calls of our own code and the files of a PATCH of a subscription."""
    from benchmarks.calls import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready))


def layers(arguments: argparse.Namespace) -> None:
    """Print where a GET, a list, a PATCH and a receipt spend their time."""
    from benchmarks.layers import report

    with opened(arguments.folder, 1, 100) as ready:
        print(report(ready))


def events(arguments: argparse.Namespace) -> None:
    """Print what the event feed costs, and how late it is."""
    from benchmarks.events import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready, rounds=arguments.rounds, seconds=arguments.seconds))


def checks(_: argparse.Namespace) -> None:
    """Print the processor time and memory that the checks of the worst known bodies take."""
    from benchmarks.checks import report

    print(report())


def search(arguments: argparse.Namespace) -> None:
    """Print how long a search takes, and what keeping its terms current costs."""
    from benchmarks.search import report

    with opened(arguments.folder, max(arguments.users // 100, 1), 100) as ready:
        print(report(ready))


def console(arguments: argparse.Namespace) -> None:
    """Print how long pages of the console take."""
    from benchmarks.console import report

    with opened(arguments.folder, max(arguments.users // 100, 1), 100) as ready:
        print(report(ready))


def import_users(arguments: argparse.Namespace) -> None:
    """Print how long an import of users with memberships takes, and its memory."""
    from benchmarks.imports import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready, arguments.users))


def deleting(arguments: argparse.Namespace) -> None:
    """Print what another tenant notices of the deletion of a large one."""
    from benchmarks.deleting import report

    with opened(arguments.folder, arguments.tenants, 100) as ready:
        print(report(ready, arguments.users))


def scim(arguments: argparse.Namespace) -> None:
    """Print how long a directory's requests take, and a sync of 10,000 users."""
    from benchmarks.scim import report

    with opened(arguments.folder, 1, arguments.users) as ready:
        print(report(ready, seconds=arguments.seconds, users=min(arguments.users, 10_000)))


def usage(arguments: argparse.Namespace) -> None:
    """Print how fast usage is counted, and how large the counters are."""
    from benchmarks.usage import report

    with opened(arguments.folder, arguments.tenants, 2) as ready:
        for connections in arguments.connections:
            print(f"{connections} connections, {arguments.seconds} s each")
            print(report(ready, connections=connections, seconds=arguments.seconds))


def leases(arguments: argparse.Namespace) -> None:
    """Print how often one process can ask for units of a lease."""
    from benchmarks.leases import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready, seconds=arguments.seconds))


def flags(arguments: argparse.Namespace) -> None:
    """Print what rules cost the evaluation of all flags."""
    from benchmarks.flags import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready))


def access(arguments: argparse.Namespace) -> None:
    """Print how long decisions about access and searches take."""
    from benchmarks import access, access_large

    measured = access_large if arguments.large else access
    with opened(arguments.folder, 1, measured.USERS) as ready:
        print(measured.report(ready))


def tables(arguments: argparse.Namespace) -> None:
    """Print what requests cost on large tables, and how long retention locks them."""
    from benchmarks.tables import report

    rows = {"audit_rows": arguments.audit_rows, "webhook_events": arguments.webhook_events}
    with (
        opened(None, arguments.tenants, 20) as empty,
        opened(arguments.folder, arguments.tenants, 20) as full,
    ):
        print(report(empty, full, **rows))


def history(arguments: argparse.Namespace) -> None:
    """Print how long reads of the past take, and what it costs a change."""
    from benchmarks.history import report

    with opened(arguments.folder, arguments.tenants, 100) as ready:
        print(report(ready, min(arguments.audit_rows, 10_000_000)))


def sizes(arguments: argparse.Namespace) -> None:
    """Print the bytes that a tenant, a user, a change and the like take."""
    from benchmarks.sizes import report

    with opened(arguments.folder, arguments.tenants, 100) as ready:
        print(report(ready))


def replicas(arguments: argparse.Namespace) -> None:
    """Print what reads cost the primary, with no, one and two replicas."""
    from benchmarks.replicas import report

    with opened(arguments.folder, 1, 2) as ready:
        print(report(ready))


def streams(arguments: argparse.Namespace) -> None:
    """Print what 4,000 event streams take, and how late they are told of changes."""
    from benchmarks.streams import OF_TENANT, STREAMS, report

    with opened(arguments.folder, STREAMS // OF_TENANT, OF_TENANT) as ready:
        print(report(ready, seconds=max(arguments.seconds, 15)))


@contextmanager
def opened(folder: Path | None, tenants: int, users_per_tenant: int) -> Iterator[Stage]:
    """The engines with their data, in a folder that is deleted unless one was named."""
    with (
        tempfile.TemporaryDirectory(prefix="benchmarks-") as temporary,
        stage(
            folder or Path(temporary), tenants=tenants, users_per_tenant=users_per_tenant
        ) as ready,
    ):
        yield ready


COMMANDS = {
    "compare": compare,
    "calls": calls,
    "layers": layers,
    "checks": checks,
    "search": search,
    "console": console,
    "import": import_users,
    "deleting": deleting,
    "scim": scim,
    "usage": usage,
    "leases": leases,
    "flags": flags,
    "access": access,
    "events": events,
    "tables": tables,
    "history": history,
    "sizes": sizes,
    "replicas": replicas,
    "streams": streams,
}


if __name__ == "__main__":
    main()
