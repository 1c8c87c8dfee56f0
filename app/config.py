"""The settings: read from the environment once and checked. One message lists all errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click
from cryptography.fernet import Fernet
from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn
from redis import ConnectionPool
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

RATE = re.compile(
    r"\s*([1-9][0-9]*)\s*(?:/|per)\s*([1-9][0-9]*)?\s*(second|minute|hour|day|month|year)s?\s*",
    re.IGNORECASE,
)
SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "month": 30 * 86_400,
    "year": 360 * 86_400,
}
# An origin as browsers send it: in lower case, without the scheme's own port.
ORIGIN = re.compile(
    r"(?!http:.*:80$|https:.*:443$)https?://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?"
)
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}
REQUIRED = "required"
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class ConfigError(click.ClickException):
    """The configuration is wrong. The message lists all errors; a command prints only the message."""


class Rate(NamedTuple):
    """A number of requests per window."""

    amount: int
    seconds: int  # length of the window


def parse_rate(text: str) -> Rate:
    """Read ``100/minute``, ``100 per minute`` or ``100/5 minutes``; raises ValueError.

    Units are second, minute, hour, day, month (30 days) and year (360 days).
    """
    found = RATE.fullmatch(text)
    if found is None:
        raise ValueError("must be a rate such as 100/minute")
    amount, multiple, unit = found.groups()
    return Rate(int(amount), int(multiple or 1) * SECONDS[unit.lower()])


def _text(value: str) -> str:
    return value.strip()


def _flag(value: str) -> bool:
    word = value.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ValueError("must be 1 or 0")


def _number(low: float, high: float, kind: type = int) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        try:
            number = kind(value)
        except ValueError:
            raise ValueError(f"must be a number, not {value!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be between {low} and {high}")
        return number

    return parse


def _words(value: str) -> tuple[str, ...]:
    return tuple(value.replace(",", " ").split())


def _pairs(value: str) -> dict[str, str]:
    pairs = {}
    for word in value.replace(",", " ").split():
        name, separator, target = word.partition("=")
        if not (name and separator and target):
            raise ValueError(f"must be name=value pairs, {word!r} is none")
        pairs[name] = target
    return pairs


def _postgres(value: str) -> str:
    """The URL with psycopg2 as its driver.

    Of several hosts, listed as libpq does or as SQLAlchemy does, the service uses the one that
    accepts writes, unless ``target_session_attrs`` says otherwise.
    """
    scheme, separator, rest = value.strip().partition("://")
    if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg2"}:
        raise ValueError("must be a postgresql:// URL")
    text = f"postgresql+psycopg2://{rest}"
    try:
        is_libpq_list = "," in urlsplit(text).netloc
        url = _from_libpq(f"postgresql://{rest}") if is_libpq_list else make_url(text)
        _, options = url.get_dialect()().create_connect_args(url)
    except (ArgumentError, ValueError, ProgrammingError):
        raise ValueError("is no URL that can be read") from None
    if "," not in str(options.get("host", "")):
        return text
    url = url.update_query_dict({"target_session_attrs": "read-write", **url.query})
    return url.render_as_string(hide_password=False)


def _from_libpq(text: str) -> URL:
    """SQLAlchemy's form of a URL that only libpq can read."""
    parts = parse_dsn(text)
    names = ("user", "password", "dbname")
    user, password, database = (parts.pop(name, None) for name in names)
    return URL.create("postgresql+psycopg2", user, password, database=database, query=parts)


def _replicas(value: str) -> tuple[str, ...]:
    return tuple(_postgres(url) for url in value.split())


def _redis(value: str) -> str:
    if not value.strip().startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must be a redis://, rediss:// or unix:// URL")
    try:
        ConnectionPool.from_url(value.strip())
    except ValueError:
        raise ValueError("is no URL that can be read") from None
    return value.strip()


def _http(value: str) -> str:
    url = urlsplit(value.strip())
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ValueError("must be an http:// or https:// URL")
    return value.strip()


def _origins(value: str) -> tuple[str, ...]:
    origins = _words(value)
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            example = "https://app.example.com"
            raise ValueError(f"must be origins such as {example}, {origin!r} is none")
    return origins


def _dsn(value: str) -> str:
    url = urlsplit(_http(value))
    if not url.username or not url.path.strip("/"):
        raise ValueError("must be https://key@host/project, as Sentry shows it")
    return value.strip()


def _rate(value: str) -> str:
    parse_rate(value)
    return value.strip()


def _pem(value: str) -> str:
    """PEM text, or the text of the file at that path; the characters ``\\n`` become line ends."""
    text = value.strip().replace("\\n", "\n")
    if not text or text.startswith("-----BEGIN"):
        return text
    try:
        return Path(text).read_text()
    except OSError as fault:
        raise ValueError(f"is neither PEM text nor a readable file ({fault.strerror})") from None


def _algorithms(value: str) -> tuple[str, ...]:
    names = _words(value)
    if not names or not set(names) <= {"RS256", "ES256", "EdDSA"}:
        raise ValueError("may name RS256, ES256 and EdDSA only")
    return names


def _fernet_keys(value: str) -> tuple[str, ...]:
    keys = _words(value)
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        raise ValueError("must be keys that `flask webhook-endpoints new-key` prints") from None
    return keys


def _level(value: str) -> str:
    name = value.strip().upper()
    if name not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return name


def _setting(parse: Callable[[str], Any], default: Any, help_: str, *, required: str = "") -> Any:
    """A setting; ``required`` is empty, or says ``required``, perhaps with an alternative."""
    metadata = {"parse": parse, "help": help_, "required": required}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """All settings. The environment variable has the field's name in capitals."""

    database_url: str = _setting(
        _postgres,
        "",
        "PostgreSQL as the plain application role; a list of hosts (`host1:5432,host2:5432`) if"
        " another one can become the primary",
        required=REQUIRED,
    )
    migration_database_url: str = _setting(
        _postgres,
        "",
        "PostgreSQL as the owner of the tables, for `flask db` and `flask users erase`; DATABASE_URL if unset",
    )
    database_replica_urls: tuple[str, ...] = _setting(
        _replicas,
        (),
        "white-space separated URLs of PostgreSQL's standbys, from which requests may read, as the"
        " plain application role; none if unset",
    )
    replica_max_lag: float = _setting(
        _number(0.5, 300, float),
        2.0,
        "seconds that an answer from a replica may be behind the primary",
    )
    redis_url: str = _setting(_redis, "", "Redis for job queues and rate limits", required=REQUIRED)
    instance_dir: str = _setting(_text, "instance", "folder of the private engines and keys")
    db_pool_size: int = _setting(
        _number(1, 200), 4, "connections per process; threads per web process"
    )
    db_pool_timeout: int = _setting(_number(1, 60), 5, "seconds to wait for a connection")
    db_connect_timeout: int = _setting(_number(1, 60), 3, "seconds to open a connection")
    db_statement_timeout: float = _setting(
        _number(1, 600, float), 15.0, "seconds one statement may take"
    )
    db_prepare: bool = _setting(
        _flag, True, "prepare frequent statements; never done behind a transaction pooler"
    )
    redis_timeout: float = _setting(_number(0.05, 10, float), 0.5, "seconds a Redis call may take")
    web_processes: int = _setting(_number(1, 200), 2, "web processes of `gunicorn wsgi:app`")
    jwt_issuer: str = _setting(_text, "", "`iss` of user tokens", required=REQUIRED)
    jwt_audience: str = _setting(_text, "", "`aud` of user tokens", required=REQUIRED)
    jwt_jwks_url: str = _setting(
        _http,
        "",
        "URL of the identity provider's published keys",
        required=f"{REQUIRED}, or JWT_PUBLIC_KEY",
    )
    jwt_public_key: str = _setting(
        _pem,
        "",
        "PEM public key, or its file, instead of JWT_JWKS_URL",
        required=f"{REQUIRED}, or JWT_JWKS_URL",
    )
    jwt_algorithms: tuple[str, ...] = _setting(
        _algorithms, ("RS256", "ES256", "EdDSA"), "accepted signature algorithms"
    )
    jwt_subject_claim: str = _setting(_text, "sub", "claim with the identity provider's user id")
    jwt_org_claim: str = _setting(
        _text, "org_id", "claim with the identity provider's organization id"
    )
    jwt_signing_key: str = _setting(
        _pem, "", "development only: PEM private key for `flask tokens issue`"
    )
    oidc_issuer: str = _setting(
        _http, "", "OpenID provider with which people sign in to the console; off if unset"
    )
    oidc_client_id: str = _setting(_text, "", "the console's client id at the OpenID provider")
    oidc_client_secret: str = _setting(_text, "", "the client's secret")
    idp_webhook_secrets: str = _setting(
        _text, "", "white-space separated `preset:secret` pairs of the identity receiver"
    )
    email_webhook_secrets: str = _setting(
        _text, "", "white-space separated `preset:secret` pairs of the e-mail receiver"
    )
    idp_role_map: Mapping[str, str] = _setting(
        _pairs,
        {},
        "the provider's role names and ours: `org:admin=admin org:member=member`",
    )
    audit_days: int = _setting(
        _number(31, 36_500), 36_500, "days for which an audit row is kept, and up to a month more"
    )
    webhook_event_days: int = _setting(
        _number(31, 36_500), 400, "days until a received webhook is deleted, with its digest"
    )
    email_event_days: int = _setting(
        _number(31, 36_500), 400, "days until an e-mail event is deleted; the message's state stays"
    )
    webhook_payload_days: int = _setting(
        _number(0, 3650),
        30,
        "days until a processed or failed webhook's payload is deleted; its digest stays",
    )
    secrets_key: tuple[str, ...] = _setting(
        _fernet_keys,
        (),
        "keys that encrypt stored secrets, comma-separated: the first encrypts, all decrypt;"
        " webhook endpoints need it",
    )
    webhook_allow_private: bool = _setting(
        _flag,
        False,
        "development only: webhook endpoints may have private addresses and plain http",
    )
    webhook_proxy: str = _setting(
        _http, "", "proxy for requests to webhook endpoints; it gets their addresses, not names"
    )
    tenant_grace_days: int = _setting(
        _number(0, 3650), 30, "days between the request to delete a tenant and its deletion"
    )
    usage_history_days: int = _setting(
        _number(1, 36_500), 400, "days for which the count of a period that is over is kept"
    )
    event_days: int = _setting(_number(1, 3650), 90, "days until an event leaves the feed")
    default_plan: str = _setting(_text, "free", "plan_name of a tenant without a live subscription")
    ratelimit_enabled: bool = _setting(_flag, True, "rate limits on or off")
    ratelimit_default: str = _setting(
        _rate, "6000/minute", "requests of one credential, over all endpoints"
    )
    ratelimit_platform: str = _setting(
        _rate, "60000/minute", "requests of one platform credential, over all endpoints"
    )
    ratelimit_scim: str = _setting(
        _rate, "12000/minute", "requests of one SCIM connection, with all of its tokens"
    )
    ratelimit_failed_auth: str = _setting(
        _rate, "1000/minute", "failed authentications from one address"
    )
    public_url: str = _setting(
        _http,
        "",
        "the service's address, for redirects; if unset, the X-Forwarded-Host of a trusted proxy,"
        " or the address that the client connected to",
    )
    trusted_proxies: int = _setting(
        _number(0, 10),
        0,
        "number of proxies that set X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host",
    )
    cors_origins: tuple[str, ...] = _setting(
        _origins,
        (),
        "origins of web applications that may call `/v1` and `/ofrep` from a browser, such as"
        " `https://app.example.com`; none if unset",
    )
    metrics_token: str = _setting(
        _text, "", "bearer token that `/metrics` asks for; open to everybody if unset"
    )
    log_level: str = _setting(_level, "INFO", "DEBUG, INFO, WARNING or ERROR")
    otel_exporter_otlp_endpoint: str = _setting(
        _http, "", "OpenTelemetry collector (OTLP over HTTP) for traces; off if unset"
    )
    sentry_dsn: str = _setting(_dsn, "", "Sentry project for error reports; off if unset")


SETTINGS = {setting.name.upper(): setting for setting in fields(Config)}


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
    """The errors about required settings, where the environment has the ``given`` ones."""
    faults = [
        f"{name} is not set"
        for name, setting in SETTINGS.items()
        if setting.metadata["required"] == REQUIRED and name not in given
    ]
    if ("JWT_JWKS_URL" in given) == ("JWT_PUBLIC_KEY" in given):
        faults.append("exactly one of JWT_JWKS_URL and JWT_PUBLIC_KEY must be set")
    oidc = {"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"}
    if oidc & set(given) and not oidc <= set(given):
        faults.append("OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together")
    return faults
