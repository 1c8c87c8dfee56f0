"""The settings: read from the environment once and checked. One message lists all errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import click
from flask import current_app

from app.config_logo import parse_logo
from app.config_values import (
    Address,
    checked_rate,
    number_between,
    parse_algorithms,
    parse_claim,
    parse_color,
    parse_fernet_keys,
    parse_flag,
    parse_http_url,
    parse_log_level,
    parse_mail_address,
    parse_origins,
    parse_pairs,
    parse_pem,
    parse_postgres_url,
    parse_postgres_urls,
    parse_redis_url,
    parse_resolvers,
    parse_sentry_dsn,
    parse_smtp_url,
    parse_text,
    parse_token_url,
    parse_trial,
)

REQUIRED = "required"


class ConfigError(click.ClickException):
    """The configuration is wrong. The message lists all errors; a command prints only the message."""


def _setting(
    parse: Callable[[str], object], default: Any, help_: str, *, required: str = ""
) -> Any:
    """A setting; ``required`` is empty, or says ``required``, perhaps with an alternative."""
    metadata = {"parse": parse, "help": help_, "required": required}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def _secrets(provider: str, form: str = "secrets") -> Any:
    return _setting(parse_text, "", f"white-space separated {form} of the receiver of {provider}")


def _api_key(provider: str, without: str = "events are applied as sent") -> Any:
    help_ = f"key of {provider}'s API; without it {without}"
    return _setting(parse_text, "", help_)


def _api_url(provider: str, default: str = "; production's if unset") -> Any:
    return _setting(parse_http_url, "", f"address of {provider}'s API{default}")


@dataclass(frozen=True)
class Config:
    """All settings. The environment variable has the field's name in capitals."""

    database_url: str = _setting(
        parse_postgres_url,
        "",
        "PostgreSQL as the plain application role; a list of hosts (`host1:5432,host2:5432`) if"
        " another one can become the primary; TLS by `?sslmode=verify-full`",
        required=REQUIRED,
    )
    migration_database_url: str = _setting(
        parse_postgres_url,
        "",
        "PostgreSQL as the owner of the tables, for `flask db` and `flask users erase`; DATABASE_URL if unset",
    )
    database_replica_urls: tuple[str, ...] = _setting(
        parse_postgres_urls,
        (),
        "white-space separated URLs of PostgreSQL's standbys, from which requests may read, as the"
        " plain application role; none if unset",
    )
    replica_max_lag: float = _setting(
        number_between(0.5, 300, float),
        2.0,
        "seconds that an answer from a replica may be behind the primary",
    )
    redis_url: str = _setting(
        parse_redis_url, "", "Redis: queues, rate limits; `rediss://` for TLS", required=REQUIRED
    )
    instance_dir: str = _setting(parse_text, "instance", "folder of the private engines and keys")
    private_instance: bool = _setting(
        parse_flag, False, "set by `flask dev`: a private instance, for development"
    )
    db_pool_size: int = _setting(
        number_between(1, 200), 4, "connections per process; threads per web process"
    )
    db_pool_timeout: int = _setting(number_between(1, 60), 5, "seconds to wait for a connection")
    db_connect_timeout: int = _setting(number_between(1, 60), 3, "seconds to open a connection")
    db_statement_timeout: float = _setting(
        number_between(1, 600, float), 15.0, "seconds one statement may take"
    )
    db_prepare: bool = _setting(
        parse_flag, True, "prepare frequent statements; never done behind a transaction pooler"
    )
    redis_timeout: float = _setting(
        number_between(0.05, 10, float), 0.5, "seconds a Redis call may take"
    )
    web_processes: int = _setting(number_between(1, 200), 2, "web processes of `gunicorn wsgi:app`")
    jwt_issuer: str = _setting(parse_text, "", "`iss` of user tokens", required=REQUIRED)
    jwt_audience: str = _setting(parse_text, "", "`aud` of user tokens", required=REQUIRED)
    jwt_jwks_url: str = _setting(
        parse_http_url,
        "",
        "URL of the identity provider's published keys",
        required=f"{REQUIRED}, or JWT_PUBLIC_KEY",
    )
    jwt_public_key: str = _setting(
        parse_pem,
        "",
        "PEM public key, or its file, instead of JWT_JWKS_URL",
        required=f"{REQUIRED}, or JWT_JWKS_URL",
    )
    jwt_algorithms: tuple[str, ...] = _setting(
        parse_algorithms, ("RS256", "ES256", "EdDSA"), "accepted signature algorithms"
    )
    jwt_subject_claim: str = _setting(
        parse_text, "sub", "claim with the identity provider's user id"
    )
    jwt_org_claim: str = _setting(
        parse_text, "org_id", "claim with the identity provider's organization id"
    )
    jwt_email_claim: str = _setting(parse_text, "email", "claim with the person's e-mail address")
    jwt_email_verified_claim: str = _setting(
        parse_claim,
        "email_verified",
        "claim that is true if the address is verified; `-` if every address in a token is",
    )
    jwt_signing_key: str = _setting(
        parse_pem, "", "development only: PEM private key for `flask tokens issue`"
    )
    oidc_issuer: str = _setting(
        parse_http_url, "", "OpenID provider with which people sign in to the console; off if unset"
    )
    oidc_client_id: str = _setting(parse_text, "", "the console's client id at the OpenID provider")
    oidc_client_secret: str = _setting(parse_text, "", "the client's secret")
    console_name: str = _setting(parse_text, "Control plane", "the product's name in the console")
    setup_name: str = _setting(
        parse_text, "", "the product's name on the pages of setup links; CONSOLE_NAME if unset"
    )
    setup_logo: tuple[bytes, str] | None = _setting(
        parse_logo, None, "file of the logo on these pages: SVG or PNG, at most 64 KiB"
    )
    setup_color: str = _setting(
        parse_color, "", "colour of buttons and links on these pages, such as `#3157c9`"
    )
    sso_portal_url: str = _setting(
        parse_http_url,
        "",
        "page of the identity provider where a customer's administrator sets up SSO;"
        " `{tenant_id}` and `{org_id}` are replaced",
    )
    environment_name: str = _setting(
        parse_text, "", "shown beside the name, such as `staging`; `flask dev` sets development"
    )
    idp_webhook_secrets: str = _setting(
        parse_text, "", "white-space separated `preset:secret` pairs of the identity receiver"
    )
    email_webhook_secrets: str = _setting(
        parse_text, "", "white-space separated `preset:secret` pairs of the e-mail receiver"
    )
    webhook_secrets_stripe: str = _secrets("Stripe")
    webhook_secrets_paddle: str = _secrets("Paddle")
    webhook_secrets_chargebee: str = _secrets("Chargebee", "`user:password`")
    webhook_secrets_lemonsqueezy: str = _secrets("Lemon Squeezy")
    webhook_secrets_polar: str = _secrets("Polar")
    stripe_api_key: str = _api_key("Stripe")
    stripe_api_url: str = _api_url("Stripe")
    paddle_api_key: str = _api_key("Paddle")
    paddle_api_url: str = _api_url("Paddle")
    chargebee_api_key: str = _api_key("Chargebee", "none is applied")
    chargebee_api_url: str = _api_url("Chargebee", ": `https://SITE.chargebee.com/api/v2`")
    lemonsqueezy_api_key: str = _api_key("Lemon Squeezy")
    lemonsqueezy_api_url: str = _api_url("Lemon Squeezy")
    polar_api_key: str = _api_key("Polar")
    polar_api_url: str = _api_url("Polar")
    billing_livemode: bool = _setting(
        parse_flag,
        True,
        "accept billing events of the live mode (1) or of the test mode (0), where they tell",
    )
    billing_reconcile_hours: int = _setting(
        number_between(0, 168), 6, "hours between two comparisons with a billing provider; 0: none"
    )
    idp_role_map: Mapping[str, str] = _setting(
        parse_pairs, {}, "the provider's role names and ours: `org:admin=admin org:member=member`"
    )
    audit_days: int = _setting(
        number_between(31, 36_500),
        36_500,
        "days for which an audit row is kept, and up to a month more",
    )
    webhook_event_days: int = _setting(
        number_between(31, 36_500), 400, "days until a received webhook is deleted, with its digest"
    )
    email_event_days: int = _setting(
        number_between(31, 36_500),
        400,
        "days until an e-mail event is deleted; the message's state stays",
    )
    webhook_payload_days: int = _setting(
        number_between(0, 3650),
        30,
        "days until a processed or failed webhook's payload is deleted; its digest stays",
    )
    secrets_key: tuple[str, ...] = _setting(
        parse_fernet_keys,
        (),
        "keys that encrypt stored secrets, comma-separated: the first encrypts, all decrypt;"
        " webhook endpoints need it",
    )
    webhook_allow_private: bool = _setting(
        parse_flag,
        False,
        "development only: webhook endpoints may have private addresses and plain http",
    )
    webhook_proxy: str = _setting(
        parse_http_url,
        "",
        "proxy for requests to webhook endpoints; it gets their addresses, not names",
    )
    invitation_url: str = _setting(
        parse_token_url,
        "",
        "the product's page that accepts an invitation, with `{token}` for the token",
    )
    invitation_days: int = _setting(
        number_between(1, 36_500), 400, "days until an invitation that has ended is deleted"
    )
    smtp_url: str = _setting(
        parse_smtp_url,
        "",
        "mail server that sends invitations, such as `smtp://user:password@mail.example.com:587`"
        " (STARTTLS), `smtps://` (TLS) or `smtp+plain://`; if unset, the product sends them",
    )
    mail_from: str = _setting(
        parse_mail_address, "", "sender of mails, such as `Acme <no-reply@example.com>`"
    )
    dns_resolvers: tuple[Address, ...] = _setting(
        parse_resolvers,
        (),
        "white-space separated IP addresses of DNS resolvers, such as `10.0.0.2 [::1]:5353`, for the"
        " verification of domains; those of the system if unset",
    )
    tenant_grace_days: int = _setting(
        number_between(0, 3650), 30, "days between the request to delete a tenant and its deletion"
    )
    usage_history_days: int = _setting(
        number_between(1, 36_500), 400, "days for which the count of a period that is over is kept"
    )
    event_days: int = _setting(number_between(1, 3650), 90, "days until an event leaves the feed")
    log_stream_days: int = _setting(
        number_between(1, 365), 7, "further days for which events are kept that a log stream lacks"
    )
    aws_access_key_id: str = _setting(
        parse_text, "", "key of AWS, by which log streams assume the roles of customers"
    )
    aws_secret_access_key: str = _setting(parse_text, "", "the secret of this key")
    default_plan: str = _setting(
        parse_text,
        "free",
        "plan_name of a tenant all of whose subscriptions have ended, or that has none",
    )
    new_tenant_plan: tuple[str, int] | None = _setting(
        parse_trial,
        None,
        "trial of new tenants, such as `pro:14d`, unless an import creates them; none if unset",
    )
    override_reason_required: bool = _setting(
        parse_flag,
        False,
        "who creates or changes a flag override gives a reason; imports need none",
    )
    ratelimit_enabled: bool = _setting(parse_flag, True, "rate limits on or off")
    ratelimit_default: str = _setting(
        checked_rate, "6000/minute", "requests of one credential, over all endpoints"
    )
    ratelimit_platform: str = _setting(
        checked_rate, "60000/minute", "requests of one platform credential, over all endpoints"
    )
    ratelimit_scim: str = _setting(
        checked_rate, "12000/minute", "requests of one SCIM connection, with all of its tokens"
    )
    ratelimit_failed_auth: str = _setting(
        checked_rate, "1000/minute", "failed authentications from one address"
    )
    public_url: str = _setting(
        parse_http_url,
        "",
        "the service's address; if unset, the X-Forwarded-Host of a trusted proxy,"
        " or the address that the client connected to",
    )
    trusted_proxies: int = _setting(
        number_between(0, 10),
        0,
        "number of proxies that set X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host",
    )
    cors_origins: tuple[str, ...] = _setting(
        parse_origins,
        (),
        "origins of web applications that may call `/v1` and `/ofrep` from a browser, such as"
        " `https://app.example.com`; none if unset",
    )
    stream_url: str = _setting(
        parse_http_url,
        "",
        "address of the stream process, where a proxy does not lead to it from the service's own",
    )
    stream_limit: int = _setting(
        number_between(1, 100_000), 5_000, "event streams that one stream process holds"
    )
    stream_tenant_limit: int = _setting(
        number_between(1, 100_000), 1_000, "event streams of one tenant in one stream process"
    )
    metrics_token: str = _setting(
        parse_text, "", "bearer token that `/metrics` requires; without it `/metrics` is public"
    )
    log_level: str = _setting(
        parse_log_level, "INFO", "DEBUG, INFO, WARNING or ERROR; by default WARNING in `flask dev`"
    )
    otel_exporter_otlp_endpoint: str = _setting(
        parse_http_url, "", "OpenTelemetry collector (OTLP over HTTP) for traces; off if unset"
    )
    sentry_dsn: str = _setting(
        parse_sentry_dsn, "", "Sentry project for error reports; off if unset"
    )


SETTINGS = {setting.name.upper(): setting for setting in fields(Config)}


def current_config() -> Config:
    config: Config = current_app.extensions["config"]
    return config


def load_config(environ: Mapping[str, str]) -> Config:
    """Read and check the settings.

    Raises :class:`ConfigError`, which names all wrong variables, not only the first.
    """
    values: dict[str, Any] = {}
    faults = {}
    for name, setting in SETTINGS.items():
        text = environ.get(name)
        if text is None or not text.strip():
            continue
        try:
            values[setting.name] = setting.metadata["parse"](text)
        except ValueError as fault:
            faults[name] = f"{name} {fault}"
    missing = _missing({*faults, *(name.upper() for name, value in values.items() if value)})
    if faults or missing:
        listed = "; ".join([*faults.values(), *missing])
        raise ConfigError(f"The configuration is not usable: {listed}.")
    values.setdefault("migration_database_url", values["database_url"])
    return Config(**values)


def _missing(given: Collection[str]) -> list[str]:
    """The errors about required settings that are not among those ``given``."""
    faults = [
        f"{name} is not set"
        for name, setting in SETTINGS.items()
        if setting.metadata["required"] == REQUIRED and name not in given
    ]
    if ("JWT_JWKS_URL" in given) == ("JWT_PUBLIC_KEY" in given):
        faults.append("exactly one of JWT_JWKS_URL and JWT_PUBLIC_KEY must be set")
    if "CHARGEBEE_API_KEY" in given and "CHARGEBEE_API_URL" not in given:
        faults.append("CHARGEBEE_API_URL must be set with CHARGEBEE_API_KEY")
    if "SMTP_URL" in given and not {"MAIL_FROM", "INVITATION_URL"} <= set(given):
        faults.append("MAIL_FROM and INVITATION_URL must be set with SMTP_URL")
    oidc = {"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"}
    if oidc & set(given) and not oidc <= set(given):
        faults.append("OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together")
    return faults
