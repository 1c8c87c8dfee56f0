"""Every command of ``flask …``, one file per group."""

from app.cli.jobs import jobs

COMMANDS = (jobs,)
