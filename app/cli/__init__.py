"""The operators' commands of ``flask …``, one file per group."""

from app.cli.access import access
from app.cli.api_keys import api_keys
from app.cli.audit import audit
from app.cli.console import console
from app.cli.custom_fields import custom_fields
from app.cli.doctor import doctor
from app.cli.emails import emails
from app.cli.events import events
from app.cli.flags import flags
from app.cli.imports import export_file, import_file, imports
from app.cli.jobs import jobs
from app.cli.mcp import mcp
from app.cli.memberships import memberships
from app.cli.plans import plans
from app.cli.platform_admins import platform_admins
from app.cli.scim import scim
from app.cli.search import search
from app.cli.subscriptions import subscriptions
from app.cli.tenants import tenants
from app.cli.tokens import tokens
from app.cli.usage import usage
from app.cli.users import users
from app.cli.version import version
from app.cli.webhook_endpoints import webhook_endpoints
from app.cli.webhooks import webhooks

COMMANDS = (
    access,
    api_keys,
    audit,
    console,
    custom_fields,
    doctor,
    emails,
    export_file,
    events,
    flags,
    import_file,
    imports,
    jobs,
    mcp,
    memberships,
    plans,
    platform_admins,
    scim,
    search,
    subscriptions,
    tenants,
    tokens,
    usage,
    users,
    version,
    webhook_endpoints,
    webhooks,
)
