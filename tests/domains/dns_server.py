"""A DNS server on the loopback interface that gives any answer, also a hostile one."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from app.config_values import Address

Reply = Callable[[dns.message.Message], bytes | None]
"""What the server answers to a question; None: nothing."""


class Answers(NamedTuple):
    """The server's address, and its answers over UDP and TCP; without one over TCP that of UDP."""

    address: Address
    udp: dict[str, Reply]
    tcp: dict[str, Reply]
    asked: list[str]

    def set(self, name: str, udp: Reply, tcp: Reply | None = None) -> None:
        self.udp[name], self.tcp[name] = udp, tcp or udp


@contextmanager
def dns_server() -> Iterator[Answers]:
    """Answer until the block ends. Names without an answer do not exist (NXDOMAIN)."""
    udp, tcp = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
    for _ in range(20):
        try:
            tcp.bind(("127.0.0.1", 0))
            udp.bind(tcp.getsockname())
            break
        except OSError:
            tcp.close()
            tcp = socket.socket()
    tcp.listen(50)
    answers = Answers(Address(*tcp.getsockname()), {}, {}, [])
    threads = [
        threading.Thread(target=_serve_udp, args=(udp, answers), daemon=True),
        threading.Thread(target=_serve_tcp, args=(tcp, answers), daemon=True),
    ]
    for thread in threads:
        thread.start()
    yield answers
    udp.sendto(b"", udp.getsockname())
    tcp.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    udp.close()
    tcp.close()


def _serve_udp(server: socket.socket, answers: Answers) -> None:
    while True:
        wire, client = server.recvfrom(65_535)
        if not wire:
            return
        reply = _reply(wire, answers, answers.udp)
        if reply is not None:
            server.sendto(reply, client)


def _serve_tcp(server: socket.socket, answers: Answers) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            client.settimeout(6)
            (size,) = struct.unpack("!H", client.recv(2))
            reply = _reply(client.recv(size), answers, answers.tcp)
            if reply is None:
                client.recv(1)  # until the client goes away
            else:
                client.sendall(struct.pack("!H", len(reply)) + reply)


def _reply(wire: bytes, answers: Answers, replies: dict[str, Reply]) -> bytes | None:
    query = dns.message.from_wire(wire)
    name = query.question[0].name.to_text(omit_final_dot=True)
    answers.asked.append(name)
    return replies.get(name, failing(dns.rcode.NXDOMAIN))(query)


def records(*lines: str, rcode: int = dns.rcode.NOERROR, flags: int = 0) -> Reply:
    """Records as in a zone file: ``TXT "text"`` of the question's name, or ``name. CNAME other.``."""

    def reply(query: dns.message.Message) -> bytes:
        answer = dns.message.make_response(query)
        answer.set_rcode(rcode)
        answer.flags |= flags
        own = query.question[0].name.to_text()
        for line in lines:
            name, kind, data = (
                (own, *line.split(" ", 1)) if line.startswith("TXT") else line.split(" ", 2)
            )
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", kind, data))
        return answer.to_wire(max_size=65_535)

    return reply


def failing(rcode: int) -> Reply:
    return records(rcode=rcode)


def silence(_: dns.message.Message) -> None:
    return None


def truncated(query: dns.message.Message) -> bytes:
    return records(flags=dns.flags.TC)(query)


def raw(body: Callable[[bytes], bytes], counts: tuple[int, int, int] = (1, 0, 0)) -> Reply:
    """An answer with these numbers of records, and bytes that follow the question."""

    def reply(query: dns.message.Message) -> bytes:
        question = query.to_wire()[12:].split(b"\x00\x00\x10\x00\x01")[0] + b"\x00\x00\x10\x00\x01"
        header = struct.pack("!6H", query.id, 0x8180, 1, *counts)
        return header + question + body(question)

    return reply
