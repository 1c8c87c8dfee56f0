"""Exact limits at the speed of memory: units are borrowed (leases), used and reported."""

from __future__ import annotations

import atexit
import os
from collections import defaultdict
from collections.abc import Collection
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx

from .connection import ApiError, Client

USABLE = 0.9  # of a lease's time; after the whole time the service lends the units to others
TURNS = 6  # reports in a lease's time
PAUSE = 1.0  # seconds until the service is asked again after a refusal or a fault


class Lease:
    """What is borrowed of one limit. ``lock`` guards the numbers; a renewal holds ``renewing``."""

    def __init__(self, feature: str) -> None:
        self.feature, self.lock, self.renewing = feature, Lock(), Lock()
        self.id, self.unanswered = "", -1  # what was used when a report got no answer
        self.left = self.used = self.used_before = self.size = 0
        self.ends = self.asks_at = self.denied_until = 0.0
        self.denied = self.owed = 0  # the amount that did not fit; used without a lease
        self.keys: dict[int, list[str]] = defaultdict(list)  # of lost answers, by the amount

    def take(self, n: int) -> bool:
        with self.lock:
            if n > self.left or monotonic() >= self.ends:
                return False
            self.left -= n
            self.used += n
            return True

    def end(self, known: int) -> None:
        """Forget the lease, of which the service knows so many used units."""
        self.id, self.unanswered, self.owed = "", -1, self.owed + self.used - known
        self.left = self.used = self.used_before = self.size = 0


class Limits:
    """Counts what a tenant uses of its limits; ``tenant_id`` is for platform credentials.

    While the service is away, the limits of ``lenient`` allow everything and report it later; the
    others allow what is borrowed, for ``ttl`` seconds at most. After a fork the child borrows anew.
    """

    def __init__(
        self, url: str, token: str, *, lenient: Collection[str] = (), ttl: int = 60, **tenant: str
    ) -> None:
        self._connect = lambda: Client(url, token, timeout=2.0, attempts=1).get_httpx_client()
        self._lenient, self._ttl, self._tenant = lenient, ttl, tenant
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._http, self._away_until, self._closed = self._connect(), 0.0, Event()
        self._leases: dict[str, Lease] = {}
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def allow(self, feature: str, n: int = 1) -> bool:
        """Count ``n`` units and return True, or count none; ApiError for an unknown limit.

        It sends a request only where too little is borrowed.
        """
        if n < 1:
            raise ValueError("n must be at least 1")
        lease = self._leases.get(feature) or self._leases.setdefault(feature, Lease(feature))
        return lease.take(n) or self._borrow(lease, n) or self._consume(lease, n)

    def close(self) -> None:
        """Report what was used and return the rest; a program that ends does it by itself."""
        atexit.unregister(self.close)
        self._closed.set()
        self._thread.join()
        self._http.close()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closed.wait(self._ttl / TURNS)
            for lease in [*self._leases.values()]:
                self._renew(lease)

    def _borrow(self, lease: Lease, n: int) -> bool:
        with lease.renewing:
            while not lease.take(n):
                if monotonic() < max(lease.asks_at, self._away_until):
                    return False
                self._exchange(lease, max(2 * lease.size, n))
            return True

    def _renew(self, lease: Lease) -> None:
        """Report, and keep twice what was used since the last time, or nothing at the end."""
        with lease.renewing:
            recent, lease.used_before = lease.used - lease.used_before, lease.used
            self._exchange(lease, 0 if self._closed.is_set() else 2 * recent)
            lost = (n for n, keys in [*lease.keys.items()] if keys and n <= lease.owed)
            n = next(lost, lease.owed)
            if n and isinstance(self._count(lease, n), dict):
                with lease.lock:
                    lease.owed -= n

    def _exchange(self, lease: Lease, size: int) -> None:
        """Report, and borrow ``size`` units or as many as are free; 0 ends the lease."""
        began = monotonic()
        with lease.lock:
            if lease.used == lease.unanswered:
                size = 0  # the earlier report may arrive later than this one, and change the size
            used, lease.left = lease.used, min(lease.left, size)  # the rest is lent to others
            kept = lease.left if lease.id else 0
        if lease.id:
            found = self._send("PUT", f"leases/{lease.id}", used=used, amount=size)
        elif size:
            wanted = {"feature": lease.feature, "amount": size, "ttl_seconds": self._ttl}
            found = self._send("POST", "leases", **wanted, **self._tenant)
        else:
            return
        with lease.lock:
            if isinstance(found, ApiError):
                lease.asks_at = began + PAUSE
                if lease.id and found.code == "hold_ended":
                    ended = found.response.json()["data"]
                    lease.end(ended["counted"] + ended["over_by"])
                elif lease.id and found.status in (404, 409):
                    lease.end(used)
            elif found and found["state"] != "open":
                lease.end(used)
            elif found:
                lease.id, lease.size = found["id"], found["amount"]
                lease.left += lease.size - kept
                lease.ends = began + self._ttl * USABLE
                lease.asks_at = began + PAUSE if lease.size < size else 0.0
            else:
                lease.unanswered = used if lease.id else -1

    def _consume(self, lease: Lease, n: int) -> bool:
        now = monotonic()
        if n >= lease.denied and now < lease.denied_until:
            return False
        if now >= self._away_until and (found := self._count(lease, n)) is not None:
            if isinstance(found, dict):
                return True
            if found.code != "limit_reached":
                raise found
            lease.denied, lease.denied_until = n, now + PAUSE
            return False
        with lease.lock:
            if lease.feature not in self._lenient:
                return False
            if lease.id:  # more than was lent, which the service records as an overrun
                lease.used, lease.left = lease.used + n, lease.left - n
            else:
                lease.owed += n
            return True

    def _count(self, lease: Lease, n: int) -> Any:
        """Count without a lease. What a request with a lost answer has counted is counted once."""
        with lease.lock:
            key = lease.keys[n].pop() if lease.keys[n] else str(uuid4())
        wanted = {"feature": lease.feature, "amount": n, "idempotency_key": key}
        found = self._send("POST", "consume", **wanted, **self._tenant)
        if found is None:
            with lease.lock:
                lease.keys[n].append(key)
        return found

    def _send(self, method: str, path: str, **body: Any) -> Any:
        """The answer, or the error that refuses the request; None if the service is away."""
        try:
            return self._http.request(method, f"/v1/usage/{path}", json=body).json()["data"]
        except ApiError as refusal:
            if refusal.status != 429 and refusal.status < 500:
                return refusal
        except httpx.TransportError:
            pass
        self._away_until = monotonic() + PAUSE
        return None
