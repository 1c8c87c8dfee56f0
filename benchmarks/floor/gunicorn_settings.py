"""The service's own settings, without its hooks: those are about its database and its metrics."""

import os
import runpy

os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", "unused")
settings = runpy.run_path("gunicorn.conf.py")
globals().update({name: value for name, value in settings.items() if not callable(value)})
