"""Ports for the servers that tests start."""

import secrets
import socket

# Below the ephemeral ports: the system gives one of those to an outgoing connection at any moment,
# also between this choice and the server's start.
PORTS = range(20_000, 32_000)


def free_port(in_a_row: int = 1) -> int:
    """The first of ``in_a_row`` ports on which nothing listens, chosen at random."""
    while True:
        first = secrets.choice(PORTS)
        if all(is_free(port) for port in range(first, first + in_a_row)):
            return first


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback address."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
