"""``flask access``."""

from __future__ import annotations

import click

from app.access import service
from app.access.schemas import AccessQuerySchema, ExplanationSchema
from app.cli.api_keys import PERMISSIONS
from app.cli.base import AppGroup, json_option, operator, print_json, print_rows
from app.cli.lookup import find_tenant, find_user
from app.cli.records import load

COLUMNS = ("step", "outcome", "found", "change")

access = AppGroup("access", help="Explain why requests are allowed or refused.")
SHAPE = ExplanationSchema()


@access.command("explain")
@click.argument("permission", type=PERMISSIONS, metavar="PERMISSION")
@click.option("--subject", help="A token's subject.")
@click.option("--user", help="A user (id or e-mail address), as the subject of a token.")
@click.option("--key", "key_id", help="The id of an API key.")
@click.option("--org-id", help="The token's organization; by default the user's.")
@click.option("--tenant", help="A tenant (slug or id), instead of its organization.")
@json_option
@operator
def explain(
    permission: str,
    subject: str | None,
    user: str | None,
    key_id: str | None,
    org_id: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Explain whether a person or an API key has a permission.

    PERMISSION is its name, such as users:read.
    """
    if [subject, user, key_id].count(None) != 2:
        raise click.UsageError("Give exactly one of --subject, --user and --key.")
    if org_id is not None and tenant is not None:
        raise click.UsageError("Give either --org-id or --tenant.")
    given = {
        "permission": permission,
        "subject": subject,
        "user_id": str(find_user(user, tenant).id) if user else None,
        "key_id": key_id,
        "org_id": org_id,
        "tenant_id": str(find_tenant(tenant).id) if tenant else None,
    }
    told = service.explain(**load(AccessQuerySchema, given))
    shown = SHAPE.dump(told)
    if as_json:
        print_json(shown)
        return
    print_rows(shown["steps"], COLUMNS, as_json=False)
    answer = "Allowed" if told.allowed else f"Refused with {told.status} {told.reason}"
    click.echo(f"{answer}; decided by: {told.decided_by}.")
