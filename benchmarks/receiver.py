"""A cheap receiver of webhooks, in a process of its own: ``python -m benchmarks.receiver 3``.

It listens on so many ports and prints them. ``GET /`` of any of them lists what has come as
``[port, moment, body]`` and forgets it; ``GET /dead`` lets that port answer nothing from now on.
Moments are those of :func:`time.monotonic`, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

RECEIVED: list[tuple[int, float, str]] = []
DEAD: set[int] = set()


class Connection(asyncio.Protocol):
    """One connection, whose requests come one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._port = transport.get_extra_info("sockname")[1]
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, separator, body = self._read.partition(b"\r\n\r\n")
        if separator and len(body) >= _length(head):
            self._read = b""
            answer = self._answer(head.split(b" ", 2)[:2], body)
            if answer is not None:
                length = b"Content-Length: %d\r\n\r\n" % len(answer)
                self._transport.write(b"HTTP/1.1 200 OK\r\n" + length + answer)

    def _answer(self, target: list[bytes], body: bytes) -> bytes | None:
        if target[0] == b"POST":
            RECEIVED.append((self._port, time.monotonic(), body.decode()))
            return None if self._port in DEAD else b"ok"
        if target[1] == b"/dead":
            DEAD.add(self._port)
            return b"ok"
        listed = json.dumps(RECEIVED).encode()
        RECEIVED.clear()
        return listed


def _length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


async def main(count: int) -> None:
    """Listen until the process is ended."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(Connection, "127.0.0.1", 0) for _ in range(count)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
