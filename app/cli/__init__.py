"""The operators' commands of ``flask …``, one file per group."""

from app.cli.api_keys import api_keys
from app.cli.custom_fields import custom_fields
from app.cli.doctor import doctor
from app.cli.emails import emails
from app.cli.events import events
from app.cli.flags import flags
from app.cli.jobs import jobs
from app.cli.memberships import memberships
from app.cli.platform_admins import platform_admins
from app.cli.subscriptions import subscriptions
from app.cli.tenants import tenants
from app.cli.tokens import tokens
from app.cli.users import users
from app.cli.webhooks import webhooks

COMMANDS = (
    api_keys,
    custom_fields,
    doctor,
    emails,
    events,
    flags,
    jobs,
    memberships,
    platform_admins,
    subscriptions,
    tenants,
    tokens,
    users,
    webhooks,
)
