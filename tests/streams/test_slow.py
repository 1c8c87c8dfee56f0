"""A client that reads too slowly is dropped."""

import socket
import time

import httpx

from tests.factories import create_member, platform_token
from tests.running.serving import HOST, wait_until

LARGE = 5_000  # bytes; an event has them three times


def test_is_dropped_at_256_kib(api, port, tenant):
    user, token = create_member(tenant)[0], platform_token()
    slow = socket.create_connection((HOST, port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = (
        f"GET /v1/events/stream HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    slow.sendall(head.encode())
    time.sleep(0.5)

    def is_dropped():
        for number in range(100):
            patches = {"note": str(number % 10) * LARGE}
            api.patch(f"/v1/users/{user.id}/meta_data", token=token, json={"patches": patches})
        return (
            'streams_dropped_total{kind="events"} 1.0'
            in httpx.get(f"http://{HOST}:{port}/metrics").text
        )

    wait_until(is_dropped)
    slow.close()
