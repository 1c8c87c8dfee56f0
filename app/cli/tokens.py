"""``flask tokens``: user tokens that the development key signs instead of an identity provider."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from app.auth.tokens import algorithm_of
from app.cli.base import Group, json_option
from app.cli.calls import in_process
from app.config import Config, current_config
from app.core.db.tenancy import platform_transaction
from app.platform_admins import service as platform_admins
from app.surfaces.commands.refusals import Refused
from app.surfaces.commands.resolver import Resolver
from app.surfaces.commands.text import print_text

HOUR = 3600

tokens = Group("tokens", help="Issue user tokens, signed by the development key.")


def subject_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say for whom a token or a link is; :func:`chosen_subject` reads them."""
    for option in (
        click.option("--tenant", help="The tenant (slug or id)."),
        click.option("--user", help="For a user (id or e-mail address)."),
        click.option("--subject", help="With --superadmin: which one, where there are several."),
        click.option("--superadmin", is_flag=True, help="For a platform superadmin."),
    ):
        command = option(command)
    return command


@tokens.command("issue")
@subject_options
@click.option(
    "--ttl",
    default=HOUR,
    show_default=True,
    type=click.IntRange(1),
    help="Seconds until the token expires.",
)
@click.option("--email", help="For somebody who is no user yet: their verified address.")
@json_option
def issue(email: str | None, ttl: int, as_json: bool, **chosen: Any) -> None:
    """Print a token."""
    if email is not None and any(chosen.values()):
        raise click.UsageError("Give --email alone.")
    subject, org_id = chosen_subject(**chosen) if email is None else (email, None)
    token = issue_token(current_config(), subject=subject, org_id=org_id, email=email, ttl=ttl)
    value = {"token": token, "subject": subject, "org_id": org_id, "ttl": ttl}
    print_text(token, value, as_json=as_json)


def chosen_subject(
    *, superadmin: bool, subject: str | None, user: str | None, tenant: str | None
) -> tuple[str, str | None]:
    """The subject, and the id of the organization or None."""
    if superadmin == (user is not None):
        raise click.UsageError("Give either --superadmin or --user.")
    if subject is not None and not superadmin:
        raise click.UsageError("Give --subject with --superadmin.")
    resolver = Resolver(in_process(), tenant)
    if user is not None:
        found = resolver.find("user", user)
        return found["idp_user_id"], found["idp_org_id"]
    org_id = resolver.find("tenant", tenant)["idp_org_id"] if tenant else None
    return superadmin_subject(subject), org_id


@platform_transaction()
def superadmin_subject(named: str | None) -> str:
    """The named platform superadmin, or the only superadmin; Refused if there is none."""
    subjects = sorted(admin.subject for admin in platform_admins.list_admins())
    if named is not None and named not in subjects:
        raise Refused(f"There is no platform superadmin {named}.")
    if not subjects:
        raise Refused("There is no platform superadmin: see flask platform-admins, or flask seed.")
    if named is None and len(subjects) > 1:
        raise Refused(f"Give --subject: one of {', '.join(subjects)}.")
    return named or subjects[0]


def issue_token(
    config: Config,
    *,
    subject: str,
    org_id: str | None = None,
    email: str | None = None,
    ttl: float = HOUR,
) -> str:
    """A JWT for ``subject`` that the service accepts for ``ttl`` seconds; ``email`` is verified.

    Raises Refused if no development key is configured.
    """
    require_signing_key(config)
    key = load_pem_private_key(config.jwt_signing_key.encode(), None)
    now = int(time.time())
    claims = {
        "iss": config.jwt_issuer,
        "aud": config.jwt_audience,
        "iat": now,
        "exp": now + int(ttl),
        config.jwt_subject_claim: subject,
    }
    if org_id is not None:
        claims[config.jwt_org_claim] = org_id
    if email is not None:
        claims |= {config.jwt_email_claim: email, config.jwt_email_verified_claim: True}
    return jwt.encode(claims, key, algorithm=algorithm_of(key.public_key()))  # type: ignore[arg-type]


def require_signing_key(config: Config) -> None:
    """Raise Refused if no development key is configured."""
    if not config.jwt_signing_key:
        raise Refused("Only the identity provider issues tokens here: JWT_SIGNING_KEY is not set.")
