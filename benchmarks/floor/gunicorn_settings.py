"""The service's settings, as handed over by :mod:`benchmarks.servers`, without its hooks."""

import json
import os

globals().update(json.loads(os.environ["GUNICORN_SETTINGS"]))
