"""``python -m benchmarks streams``: one stream process holds 4,000 streams while flags change.

A process of its own holds the streams, each with another person's token. Twenty overrides a second
change, each of which four streams are told; then the preset changes, of which all are told. The
delay is from the answer to the change to the event at the client.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import resource
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import psutil

from app import create_app
from benchmarks import tokens
from benchmarks.calls import PLATFORM_SUBJECT, add_platform_admin
from benchmarks.dataset import OVERRIDE, OVERRIDES, PRESET, org_id, row_id, subject
from benchmarks.deliveries import process
from benchmarks.servers import STOP_SECONDS, answers, free_port
from benchmarks.stage import PROJECT, Stage

STREAMS = 4_000
OF_TENANT = 4
CHANGED = 60  # tenants, in turn
PER_SECOND = 20
PATIENCE = 60  # seconds until all streams are open
LATEST = 5.0  # seconds; a later event counts as missing
Times = list[list[float]]


def report(stage: Stage, *, seconds: int) -> str:
    """All figures, as text."""
    add_platform_admin(stage)
    port = free_port()
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
    headers = tokens.bearer(stage.environment, subject=PLATFORM_SUBJECT, org_id="none")

    def send(method: str, path: str, body: Any) -> Any:
        answer = client.open(path, method=method, headers=headers, json=body)
        if answer.status_code not in (200, 201):
            raise SystemExit(f"{answer.status}: {answer.text}")
        return answer.get_json()["data"]

    overrides = [row_id(OVERRIDE, number * OVERRIDES) for number in range(CHANGED)]
    preset = f"/v1/billing/plans/{row_id(PRESET, 0)}"
    flags = send("GET", preset, None)["flags"]
    with process(stage, "sequencer"), _stream_process(stage, port) as server:
        empty = _megabytes(server)
        with _streams(stage, port) as clients:
            opened = _megabytes(server)
            changes, began, used = [], time.monotonic(), _cpu(server)
            for number in range(seconds * PER_SECOND):
                time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
                place, value = number % CHANGED, number // CHANGED % 2 == 1
                path = f"/v1/billing/flags/overrides/{overrides[place]}"
                send("PATCH", path, {"flag_value": value})
                changes.append((place, time.monotonic()))
            used = (_cpu(server) - used) / (time.monotonic() - began)
            time.sleep(LATEST)
            flags[0]["default_value"] = True
            send("PATCH", preset, {"flags": flags})
            edited = time.monotonic()
            time.sleep(LATEST)
            clients.send("end")
            times: Times = clients.recv()
    few = [
        _delay(times[place * OF_TENANT + one], moment)
        for place, moment in changes
        for one in range(OF_TENANT)
    ]
    every = [_delay(one, edited) for one in times]
    return (
        f"{STREAMS} streams: {opened:.0f} MB, {empty:.0f} MB without a stream"
        f" ({(opened - empty) * 1000 / STREAMS:.0f} KB each).\n"
        f"At {PER_SECOND} changes a second ({used:.0%} of a core): {_figures(few)}.\n"
        f"A change of the preset: {_figures(every)}."
    )


def _delay(times: list[float], moment: float) -> float:
    """Seconds until the first event after a change. It may come before the change's answer."""
    return next((max(0.0, one - moment) for one in times if one > moment - 0.5), LATEST)


def _figures(delays: list[float]) -> str:
    delays = sorted(delays)
    told = sum(one < LATEST for one in delays)
    p50, p99 = (delays[int((len(delays) - 1) * share)] for share in (0.5, 0.99))
    return (
        f"{told} of {len(delays)} events came, after {p50 * 1000:.0f} ms (p50),"
        f" {p99 * 1000:.0f} ms (p99), {delays[-1] * 1000:.0f} ms at most"
    )


@contextmanager
def _stream_process(stage: Stage, port: int) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "gunicorn", "--config", "app/streams/gunicorn.conf.py"]
    command += [f"--bind=127.0.0.1:{port}", "app.streams:create_app()"]
    limits = {"STREAM_LIMIT": str(STREAMS), "LOG_LEVEL": "WARNING"}
    running = subprocess.Popen(
        command, cwd=PROJECT, env={**stage.environment, **limits}, stderr=subprocess.DEVNULL
    )
    try:
        if not answers(running, port):
            raise SystemExit("the stream process did not start")
        yield psutil.Process(running.pid).children()[0]
    finally:
        running.terminate()
        running.wait(STOP_SECONDS)


@contextmanager
def _streams(stage: Stage, port: int) -> Iterator[Connection]:
    """A process that holds the streams; at any message it answers with the times of their events."""
    bearers = [
        tokens.bearer(
            stage.environment, subject=subject(number), org_id=org_id(number // OF_TENANT)
        )["Authorization"]
        for number in range(STREAMS)
    ]
    here, there = multiprocessing.Pipe()
    holder = multiprocessing.get_context("spawn").Process(target=_hold, args=(there, port, bearers))
    holder.start()
    try:
        if not here.poll(PATIENCE):
            raise SystemExit("the streams did not open")
        print(here.recv())
        yield here
    finally:
        holder.terminate()
        holder.join()


def _hold(pipe: Connection, port: int, bearers: list[str]) -> None:
    """Open a stream for each credential, and note when each gets an event."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    times: Times = [[] for _ in bearers]
    first, opened, began = set(), 0, time.monotonic()
    with selectors.DefaultSelector() as selector:
        while not pipe.poll():
            for number in range(opened, min(len(first) + 200, len(bearers))):
                one = socket.create_connection(("127.0.0.1", port))
                head = (
                    f"GET /ofrep/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: {bearers[number]}"
                )
                one.sendall(f"{head}\r\n\r\n".encode())
                selector.register(one, selectors.EVENT_READ, number)
                opened = number + 1
            for key, _ in selector.select(0.05):
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                if not data:
                    raise SystemExit(f"a stream has ended; {len(first)} were open")
                if b"refetchEvaluation" in data:
                    times[key.data].append(time.monotonic())
                    first.add(key.data)
            if len(first) == len(bearers) and began:
                pipe.send(f"{len(bearers)} streams opened in {time.monotonic() - began:.0f} s.")
                began = 0.0
        pipe.recv()
        pipe.send(times)


def _megabytes(server: psutil.Process) -> float:
    return server.memory_info().rss / 1e6


def _cpu(server: psutil.Process) -> float:
    return sum(server.cpu_times()[:2])
