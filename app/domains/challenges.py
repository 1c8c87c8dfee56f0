"""Looks up the TXT record that shows whose a domain is. No answer can do more than fail.

dnspython writes the question and reads the answer. The bytes of the answer are read here, because
their size, the number of records and the time are checked before dnspython reads them.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.resolver

from app.config_values import Address
from app.domains.models import CheckError

log = logging.getLogger(__name__)

SECONDS = 5.0  # for all questions to all resolvers
ROUNDS = 2  # how often each resolver is asked
MAX_BYTES = 16_384  # of an answer
MAX_RECORDS = 200  # of an answer; 10,000 with compressed names take seconds to read
UDP_PAYLOAD = 1_232  # bytes; larger answers come over TCP
PORT = 53


class Failed(Exception):
    """The look-up has no usable answer; ``error`` says why."""

    def __init__(self, error: CheckError) -> None:
        super().__init__(error)
        self.error = error


def check(name: str, value: str, resolvers: Sequence[Address]) -> CheckError | None:
    """Why no TXT record of the name has the value; None if one has.

    Takes at most :data:`SECONDS`. Without ``resolvers`` those of the system are asked.
    """
    try:
        texts = find_texts(name, resolvers or _system_resolvers())
    except Failed as fault:
        return fault.error
    if value.encode() in texts:
        return None
    return CheckError.OTHER_VALUE if texts else CheckError.NO_RECORD


def find_texts(name: str, resolvers: Sequence[Address]) -> list[bytes]:
    """The values of the TXT records; empty if there are none. Raises Failed."""
    query = dns.message.make_query(name, "TXT", use_edns=0, payload=UDP_PAYLOAD)
    ends_at = time.monotonic() + SECONDS
    turns = [*resolvers] * ROUNDS
    for number, address in enumerate(turns):
        now = time.monotonic()
        until = now + (ends_at - now) / (len(turns) - number)
        try:
            return _texts_of(query, _ask(query.to_wire(), address, until))
        except OSError as fault:
            log.info("dns_no_answer", extra={"resolver": address.host, "reason": str(fault)})
    raise Failed(CheckError.NO_ANSWER)


def _ask(query: bytes, address: Address, until: float) -> bytes:
    """The answer over UDP, or over TCP if that one is truncated; OSError without an answer."""
    with socket.socket(address.family, socket.SOCK_DGRAM) as udp:
        udp.connect(address)  # datagrams of others are not received
        udp.send(query)
        answer = b""
        while answer[:2] != query[:2]:  # the id
            udp.settimeout(_left(until))
            answer = udp.recv(MAX_BYTES)
    if len(answer) < 3 or not answer[2] << 8 & dns.flags.TC:
        return answer
    with socket.create_connection(address, _left(until)) as tcp:
        tcp.sendall(len(query).to_bytes(2) + query)
        size = int.from_bytes(_read(tcp, 2, until))
        if size > MAX_BYTES:
            raise Failed(CheckError.BAD_ANSWER)
        return _read(tcp, size, until)


def _read(tcp: socket.socket, size: int, until: float) -> bytes:
    found = b""
    while len(found) < size:
        tcp.settimeout(_left(until))
        received = tcp.recv(size - len(found))
        if not received:
            raise ConnectionResetError("the answer is cut")
        found += received
    return found


def _left(until: float) -> float:
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("too slow")
    return seconds


def _texts_of(query: dns.message.Message, wire: bytes) -> list[bytes]:
    """The TXT values of an answer. Raises OSError if the resolver could not find out."""
    counts = [int.from_bytes(wire[place : place + 2]) for place in (4, 6, 8, 10)]
    if len(wire) < 12 or sum(counts) > MAX_RECORDS:
        raise Failed(CheckError.BAD_ANSWER)
    try:
        answer = dns.message.from_wire(wire)
        if not query.is_response(answer) or answer.flags & dns.flags.TC:
            raise Failed(CheckError.BAD_ANSWER)
        if answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            raise OSError(dns.rcode.to_text(answer.rcode()))
        found = answer.resolve_chaining().answer  # type: ignore[attr-defined]  # of a query
    except (dns.exception.DNSException, ValueError):
        raise Failed(CheckError.BAD_ANSWER) from None
    return [b"".join(record.strings) for record in found or ()]


def _system_resolvers() -> list[Address]:
    try:
        found = dns.resolver.Resolver().nameservers
    except dns.resolver.NoResolverConfiguration:
        return []
    return [Address(one, PORT) for one in found if isinstance(one, str)]
