"""gunicorn's settings of the stream process.

``gunicorn --config app/streams/gunicorn.conf.py "app.streams:create_app()"`` starts it.
"""

import os
import resource
import signal
from typing import Any

os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # its /metrics shows this one process

if "PORT" not in os.environ:
    bind = "127.0.0.1:8001"
worker_class = "gevent"
workers = 1  # start more stream processes for more streams
worker_connections = 110_000  # above STREAM_LIMIT, which refuses with 503
keepalive = 0  # a connection has one request, so none is idle when the process ends
timeout = 30  # seconds without a sign of life
graceful_timeout = 5
control_socket_disable = True
http_protocols = "h1"

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each stream has a socket


def post_worker_init(worker: Any) -> None:
    """Let SIGTERM end all streams, before gunicorn waits for the open requests."""
    usual: Any = signal.getsignal(signal.SIGTERM)

    def stop(*arguments: Any) -> None:
        worker.wsgi.extensions["streams"].stop()
        usual(*arguments)

    signal.signal(signal.SIGTERM, stop)
