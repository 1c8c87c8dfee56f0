"""The forms of settings: each function reads one text and raises ValueError with what it must be."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from email.utils import formataddr, parseaddr
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

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
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Rate(NamedTuple):
    """A number of requests per window."""

    amount: int
    seconds: int  # length of the window


class Address(NamedTuple):
    """An IP address and a port, as a socket takes them."""

    host: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


def parse_rate(text: str) -> Rate:
    """Read ``100/minute``, ``100 per minute`` or ``100/5 minutes``; raises ValueError.

    Units are second, minute, hour, day, month (30 days) and year (360 days).
    """
    found = RATE.fullmatch(text)
    if found is None:
        raise ValueError("must be a rate such as 100/minute")
    amount, multiple, unit = found.groups()
    return Rate(int(amount), int(multiple or 1) * SECONDS[unit.lower()])


def parse_trial(value: str) -> tuple[str, int]:
    """The plan and the days of ``pro:14d``."""
    plan_name, _, span = value.strip().rpartition(":")
    if not plan_name or not re.fullmatch(r"[1-9][0-9]{0,3}d", span):
        raise ValueError("must be a plan and days, such as pro:14d")
    return plan_name, int(span[:-1])


def parse_text(value: str) -> str:
    return value.strip()


def parse_claim(value: str) -> str:
    """The name of a claim; ``-`` stands for none."""
    return value.strip().removeprefix("-")


def parse_color(value: str) -> str:
    """A colour of three bytes, in lower case."""
    color = value.strip().lower()
    if not re.fullmatch(r"#[0-9a-f]{6}", color):
        raise ValueError("must be a colour such as #3157c9")
    return color


def parse_flag(value: str) -> bool:
    word = value.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ValueError("must be 1 or 0")


def number_between(low: float, high: float, kind: type[float] = int) -> Callable[[str], float]:
    def parse(value: str) -> float:
        try:
            number = kind(value)
        except ValueError:
            raise ValueError(f"must be a number, not {value!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be between {low} and {high}")
        return number

    return parse


def parse_words(value: str) -> tuple[str, ...]:
    return tuple(value.replace(",", " ").split())


def parse_resolvers(value: str) -> tuple[Address, ...]:
    """The addresses of ``10.0.0.2 [::1]:5353``; the port is 53 where there is none."""
    found = []
    for word in parse_words(value):
        try:
            is_bare = ":" not in word or (word.count(":") > 1 and "[" not in word)
            url = urlsplit(f"//[{word}]" if is_bare and ":" in word else f"//{word}")
            host = str(ip_address(url.hostname or ""))
            found.append(Address(host, 53 if url.port is None else url.port))
        except ValueError:
            raise ValueError(f"must be IP addresses, {word!r} is none") from None
    return tuple(found)


def parse_pairs(value: str) -> dict[str, str]:
    pairs = {}
    for word in value.replace(",", " ").split():
        name, separator, target = word.partition("=")
        if not (name and separator and target):
            raise ValueError(f"must be name=value pairs, {word!r} is none")
        pairs[name] = target
    return pairs


def parse_postgres_url(value: str) -> str:
    """The URL with psycopg2 as its driver.

    Several hosts can be listed in libpq's or SQLAlchemy's form. The service then uses the host that
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


def parse_postgres_urls(value: str) -> tuple[str, ...]:
    return tuple(parse_postgres_url(url) for url in value.split())


def parse_redis_url(value: str) -> str:
    if not value.strip().startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must be a redis://, rediss:// or unix:// URL")
    try:
        ConnectionPool.from_url(value.strip())
    except ValueError:
        raise ValueError("is no URL that can be read") from None
    return value.strip()


def parse_http_url(value: str) -> str:
    url = urlsplit(value.strip())
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ValueError("must be an http:// or https:// URL")
    return value.strip()


def parse_token_url(value: str) -> str:
    if "{token}" not in value:
        raise ValueError("must have {token} where the token belongs")
    return parse_http_url(value)


def parse_smtp_url(value: str) -> str:
    url = urlsplit(value.strip())
    if url.scheme not in {"smtp", "smtps", "smtp+plain"} or not url.hostname:
        raise ValueError("must be an smtp://, smtps:// or smtp+plain:// URL")
    return value.strip()


def parse_mail_address(value: str) -> str:
    name, address = parseaddr(value)
    if "@" not in address or not value.isprintable():
        raise ValueError("must be an e-mail address, such as Acme <no-reply@example.com>")
    return formataddr((name, address))


def parse_origins(value: str) -> tuple[str, ...]:
    origins = parse_words(value)
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            example = "https://app.example.com"
            raise ValueError(f"must be origins such as {example}, {origin!r} is none")
    return origins


def parse_sentry_dsn(value: str) -> str:
    url = urlsplit(parse_http_url(value))
    if not url.username or not url.path.strip("/"):
        raise ValueError("must be https://key@host/project, as Sentry shows it")
    return value.strip()


def checked_rate(value: str) -> str:
    parse_rate(value)
    return value.strip()


def parse_pem(value: str) -> str:
    """PEM text, or the text of the file at that path; the characters ``\\n`` become line ends."""
    text = value.strip().replace("\\n", "\n")
    if not text or text.startswith("-----BEGIN"):
        return text
    try:
        return Path(text).read_text()
    except OSError as fault:
        raise ValueError(f"is neither PEM text nor a readable file ({fault.strerror})") from None


def parse_algorithms(value: str) -> tuple[str, ...]:
    names = parse_words(value)
    if not names or not set(names) <= {"RS256", "ES256", "EdDSA"}:
        raise ValueError("may name RS256, ES256 and EdDSA only")
    return names


def parse_fernet_keys(value: str) -> tuple[str, ...]:
    keys = parse_words(value)
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        raise ValueError("must be keys that `flask webhook-endpoints new-key` prints") from None
    return keys


def parse_log_level(value: str) -> str:
    name = value.strip().upper()
    if name not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return name
