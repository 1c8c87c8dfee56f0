"""The operators' commands of ``flask …``: generated commands, and one file per group of others."""

from app.cli.billing import billing
from app.cli.console import console
from app.cli.doctor import doctor
from app.cli.events import events
from app.cli.generated import OperationGroup
from app.cli.imports import export_file, import_file
from app.cli.jobs import jobs
from app.cli.mcp import mcp
from app.cli.plans import plans
from app.cli.platform_admins import platform_admins
from app.cli.privacy import users
from app.cli.roles import roles
from app.cli.scim import scim
from app.cli.search import search
from app.cli.subscriptions import subscriptions
from app.cli.tenants import tenants
from app.cli.tokens import tokens
from app.cli.version import version
from app.cli.webhook_endpoints import webhook_endpoints
from app.cli.webhooks import webhooks
from app.surfaces.commands.names import GROUPS

WITH_COMMANDS_BY_HAND = (
    billing, console, doctor, events, export_file, import_file, jobs, mcp, plans, platform_admins,
    roles, scim, search, subscriptions, tenants, tokens, users, version, webhook_endpoints,
    webhooks,
)  # fmt: skip
GENERATED = tuple(
    OperationGroup(name)
    for name in GROUPS
    if " " not in name and name not in {one.name for one in WITH_COMMANDS_BY_HAND}
)
COMMANDS = (*WITH_COMMANDS_BY_HAND, *GENERATED)
