"""A mail server on loopback that stores what it is sent (RFC 5321)."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Sink(socketserver.ThreadingTCPServer):
    """``answers`` are the codes for the next recipients; then each is accepted."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.messages: list[bytes] = []
        self.answers: list[str] = []

    @property
    def url(self) -> str:
        return f"smtp+plain://127.0.0.1:{self.server_address[1]}"


class Session(socketserver.StreamRequestHandler):
    server: Sink

    def handle(self) -> None:
        self.say("220 sink")
        for line in self.rfile:
            match line[:4].upper():
                case b"EHLO" | b"HELO":
                    self.say("250 sink")
                case b"RCPT":
                    self.say(self.server.answers.pop(0) if self.server.answers else "250 ok")
                case b"DATA":
                    self.say("354 go on")
                    self.server.messages.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                    self.say("250 stored")
                case b"QUIT":
                    self.say("221 bye")
                    return
                case _:
                    self.say("250 ok")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def sinking() -> Iterator[Sink]:
    with Sink() as sink:
        thread = threading.Thread(target=sink.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield sink
        finally:
            sink.shutdown()
            thread.join()
