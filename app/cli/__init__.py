"""Every command of ``flask …``, one file per group."""

from app.cli.doctor import doctor
from app.cli.jobs import jobs

COMMANDS = (doctor, jobs)
