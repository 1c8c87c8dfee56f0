"""The service's plain settings and server for the floor, without its hooks."""

import json
import os

from benchmarks.peers.work import tune_garbage_collection

globals().update(json.loads(os.environ["GUNICORN_SETTINGS"]))


def when_ready(server):
    """As the service: collect less often from here on."""
    tune_garbage_collection()
