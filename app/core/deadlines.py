"""A time limit for a request to another service, from its start to the end of its answer.

A socket's time-out is not enough: it starts again with every byte that the server sends. So a timer
shuts down the socket of the request. The thread that waits for the socket then gets an error.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection


class TooSlow(Exception):
    """A request has exceeded its time limit."""


class _Exchange:
    """One request, and the socket that sends it."""

    def __init__(self) -> None:
        self.is_over = False
        self.socket: socket.socket | None = None

    def end(self) -> None:
        self.is_over = True
        if self.socket is not None:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


_exchange: ContextVar[_Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Run the block; raises TooSlow if it takes longer than ``seconds``.

    At that moment the socket of the outgoing request that the block is sending is shut down.
    """
    exchange = _Exchange()
    timer = threading.Timer(seconds, exchange.end)
    timer.daemon = True
    timer.start()
    entered = _exchange.set(exchange)
    try:
        yield
    except Exception:
        if not exchange.is_over:
            raise
    finally:
        _exchange.reset(entered)
        timer.cancel()
    if exchange.is_over:
        raise TooSlow


class _WatchedConnection(HTTPConnection):
    """A connection that stores its socket in the exchange, so the timer can shut it down."""

    def getresponse(self) -> Any:
        """Read the answer's headers. The socket's time-out limits the time until they begin."""
        if (exchange := _exchange.get()) is not None:
            exchange.socket = self.sock
            if exchange.is_over:
                raise TooSlow
        return super().getresponse()


class _WatchedTlsConnection(_WatchedConnection, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WatchedConnection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedTlsConnection


POOLS = {"http": _Pool, "https": _TlsPool}
"""The value for a pool manager's ``pool_classes_by_scheme``; :func:`limited` needs these pools."""
