"""Looking up the record of a domain: the right answer verifies it, any other fails, and soon."""

import random
import socket
import struct
import time

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import pytest

from app.config_values import Address
from app.domains import challenges
from app.domains.challenges import CheckError, check
from tests.domains.dns_server import (
    Answers,
    dns_server,
    failing,
    raw,
    records,
    silence,
    truncated,
)

TOKEN = "Vb3x9Qa4mT0yRk1n7WcUeZsHdJ2fLpXg8oIiBtNvC5E"
NAME = "_controlplane-challenge.example.com"
OWN = f'TXT "{TOKEN}"'
# A record of the question's name, by a pointer to it: type TXT, class IN, 60 s.
POINTED = b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c"


@pytest.fixture
def server():
    with dns_server() as answers:
        yield answers


@pytest.fixture
def short(monkeypatch):
    """Give up after a second, so that tests of silence are quick."""
    monkeypatch.setattr(challenges, "SECONDS", 1.0)


def look_up(server: Answers, *further: Address) -> CheckError | None:
    return check(NAME, TOKEN, [server.address, *further])


class TestRightAnswers:
    @pytest.mark.parametrize(
        "lines",
        [
            [OWN],
            ['TXT "v=spf1 -all"', 'TXT ""', OWN, f'TXT "{TOKEN}x"'],
            [f'TXT "{TOKEN[:5]}" "{TOKEN[5:20]}" "" "{TOKEN[20:]}"'],
            [f"{NAME}. CNAME elsewhere.example.net.", f'elsewhere.example.net. TXT "{TOKEN}"'],
        ],
        ids=["alone", "beside foreign records", "in several strings", "behind a CNAME"],
    )
    def test_verify(self, server, lines):
        server.set(NAME, records(*lines))

        assert look_up(server) is None

    def test_may_come_over_tcp_if_they_are_truncated(self, server):
        server.set(NAME, truncated, records(OWN))

        assert look_up(server) is None

    def test_may_come_from_the_second_resolver(self, server, short):
        with socket.socket(type=socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 0))  # it never answers
            server.set(NAME, records(OWN))

            assert check(NAME, TOKEN, [Address(*other.getsockname()), server.address]) is None

    def test_a_resolver_that_fails_is_not_the_end(self, server):
        with dns_server() as other:
            other.set(NAME, failing(dns.rcode.SERVFAIL))
            server.set(NAME, records(OWN))

            assert check(NAME, TOKEN, [other.address, server.address]) is None

    def test_answers_with_another_id_before_it_do_not_count(self, server):
        with socket.socket(type=socket.SOCK_DGRAM) as resolver:
            resolver.bind(("127.0.0.1", 0))
            ours = records(OWN)

            def answer(query):
                return ours(query)

            server.set(NAME, answer)
            import threading

            def serve():
                wire, client = resolver.recvfrom(4096)
                query = dns.message.from_wire(wire)
                wrong = bytearray(records('TXT "other"')(query))
                wrong[0] ^= 0xFF
                resolver.sendto(bytes(wrong), client)
                resolver.sendto(b"", client)
                resolver.sendto(ours(query), client)

            thread = threading.Thread(target=serve)
            thread.start()
            assert check(NAME, TOKEN, [Address(*resolver.getsockname())]) is None
            thread.join()


class TestWrongAnswers:
    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            (records(), CheckError.NO_RECORD),
            (failing(dns.rcode.NXDOMAIN), CheckError.NO_RECORD),
            (records('TXT "other"'), CheckError.OTHER_VALUE),
            (records(f'TXT "{TOKEN.lower()}"'), CheckError.OTHER_VALUE),
            (records(f'other.example.com. TXT "{TOKEN}"'), CheckError.NO_RECORD),
            (records(f"{NAME}. A 192.0.2.1"), CheckError.NO_RECORD),
            (failing(dns.rcode.SERVFAIL), CheckError.BAD_ANSWER),
            (failing(dns.rcode.REFUSED), CheckError.BAD_ANSWER),
            (records(OWN, rcode=dns.rcode.NXDOMAIN), CheckError.BAD_ANSWER),
        ],
    )
    def test_fail(self, server, reply, expected):
        server.set(NAME, reply)

        assert look_up(server) is expected

    def test_long_cname_chains(self, server):
        chain = [f"n{one}.net. CNAME n{one + 1}.net." for one in range(100)]
        server.set(NAME, records(f"{NAME}. CNAME n0.net.", *chain, f'n100.net. TXT "{TOKEN}"'))

        assert look_up(server) is CheckError.BAD_ANSWER

    def test_10_000_records(self, server):
        empty = POINTED + b"\x00\x01\x00"
        server.set(NAME, truncated, raw(lambda _: empty * 5_000, (5_000, 0, 0)))
        assert look_up(server) is CheckError.BAD_ANSWER

        server.set(NAME, truncated, raw(lambda _: empty * 100, (10_000, 0, 0)))
        assert look_up(server) is CheckError.BAD_ANSWER

    def test_64_kib(self, server):
        own = POINTED + b"\x00\x2c\x2b" + TOKEN.encode()
        long = POINTED + struct.pack("!H", 65_000) + b"\xff" + b"x" * 64_999
        server.set(NAME, truncated, raw(lambda _: own + long, (2, 0, 0)))

        assert look_up(server) is CheckError.BAD_ANSWER

    def test_a_truncated_answer_without_tcp(self, server, short):
        server.set(NAME, truncated, silence)
        assert look_up(server) is CheckError.NO_ANSWER

        with socket.socket(type=socket.SOCK_DGRAM) as closed:
            closed.bind(("127.0.0.1", 0))  # nothing listens over TCP
            assert check(NAME, TOKEN, [Address(*closed.getsockname())]) is CheckError.NO_ANSWER

    def test_truncated_over_tcp_too(self, server):
        server.set(NAME, truncated, truncated)

        assert look_up(server) is CheckError.NO_RECORD

    def test_a_wrong_question(self, server, short):
        def reply(query):
            other = dns.message.make_query("other.example.com", "TXT", id=query.id)
            return records(OWN)(other)

        server.set(NAME, reply)

        assert look_up(server) is CheckError.NO_ANSWER

    @pytest.mark.parametrize(
        "body",
        [
            lambda _: b"\xc0\xff" + POINTED[2:] + b"\x00\x01\x00",
            lambda question: (
                struct.pack("!H", 0xC000 | 12 + len(question)) + POINTED[2:] + b"\x00\x01\x00"
            ),
            lambda _: POINTED + b"\x00\x05\xff",
            lambda _: POINTED + b"\xff\xff\x00",
            lambda _: POINTED[:7],
            lambda _: b"",
            lambda _: b"\x3f" * 300,
        ],
        ids=["forward", "to itself", "long string", "long record", "cut", "none", "long label"],
    )
    def test_broken_records_and_compression_loops(self, server, body):
        server.set(NAME, truncated, raw(body))

        assert look_up(server) is CheckError.BAD_ANSWER

    def test_a_chain_of_pointers_takes_no_time(self, server):
        """The names of many records, each behind 4,000 pointers."""

        def body(question):
            first = 12 + len(question)
            start = b"\x00\x00\x10\x00\x01\x00\x00\x00\x3c"
            chain = b"".join(
                struct.pack("!H", 0xC000 | (first + 11 + 2 * number - 2 if number else 12))
                for number in range(4_000)
            )
            holder = start + struct.pack("!H", len(chain)) + chain
            last = struct.pack("!H", 0xC000 | first + len(holder) - 2)
            return holder + (last + POINTED[2:] + b"\x00\x01\x00") * 190

        server.set(NAME, truncated, raw(body, (191, 0, 0)))
        began = time.monotonic()

        found = look_up(server)

        assert found is not None
        assert time.monotonic() - began < 5

    def test_bytes_of_chance_never_raise(self, server):
        chance = random.Random(7)
        good = records(OWN, f"{NAME}. CNAME a.net.", "a.net. A 192.0.2.1")

        def reply(query):
            wire = bytearray(good(query))
            for _ in range(chance.randint(1, 8)):
                wire[chance.randrange(len(wire))] = chance.randrange(256)
            return bytes(wire[: chance.randint(0, 999)])

        server.set(NAME, truncated, reply)

        outcomes = {look_up(server) for _ in range(500)}

        assert CheckError.BAD_ANSWER in outcomes


class TestTime:
    def test_silence_ends(self, server, short):
        server.set(NAME, silence)
        began = time.monotonic()

        assert look_up(server) is CheckError.NO_ANSWER
        assert 0.9 < time.monotonic() - began < 4

    def test_bytes_that_come_one_by_one_do_not_extend_it(self, short):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            udp.bind(tcp.getsockname())
            tcp.listen()

            import threading

            def drip():
                for _ in range(2):
                    wire, client = udp.recvfrom(4096)
                    udp.sendto(truncated(dns.message.from_wire(wire)), client)
                    connection, _ = tcp.accept()
                    with connection:
                        try:
                            connection.sendall(b"\x10\x00")
                            for _ in range(100):
                                connection.sendall(b"x")
                                time.sleep(0.05)
                        except OSError:
                            continue

            thread = threading.Thread(target=drip)
            thread.start()
            began = time.monotonic()
            found = check(NAME, TOKEN, [Address(*tcp.getsockname())])
            took = time.monotonic() - began
            thread.join()

        assert found is CheckError.NO_ANSWER
        assert took < 4

    def test_without_resolvers_of_the_system_nothing_answers(self, monkeypatch):
        def read_nothing(resolver, path):
            raise dns.resolver.NoResolverConfiguration

        monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", read_nothing)

        assert check(NAME, TOKEN, []) is CheckError.NO_ANSWER
