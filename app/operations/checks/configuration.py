"""The checks of the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from app.auth.tokens import KeySet
from app.config import REQUIRED, SETTINGS, Config
from app.core.errors import Unavailable
from app.core.health import Finding
from app.inbox.providers import RECEIVERS

REQUIRED_SETTINGS = [
    name for name, setting in SETTINGS.items() if setting.metadata["required"] == REQUIRED
] + ["JWT_JWKS_URL or JWT_PUBLIC_KEY"]


def check_configuration(config: Config) -> Iterator[Finding]:
    """The findings on the settings, and on the keys of user tokens."""
    if config.private_instance:
        fix = f"In production set {', '.join(REQUIRED_SETTINGS)}."
        yield Finding("configuration", True, "a private instance, for development", fix)
    else:
        yield Finding("configuration", True, "complete")
    for receiver in RECEIVERS.values():
        has_secrets = bool(getattr(config, receiver.setting))
        if has_secrets or not receiver.preset:  # of billing providers only those that are used
            found = "set" if has_secrets else "receiver not used"
            yield Finding(f"secret {receiver.setting.upper()}", True, found)
    if config.secrets_key:
        yield Finding("secret SECRETS_KEY", True, "set")
    else:
        fix = "Set SECRETS_KEY to what flask webhook-endpoints new-key prints, to deliver events."
        yield Finding("secret SECRETS_KEY", True, "not set", fix)
    yield _metrics(config)
    if config.jwt_signing_key and not config.private_instance:
        fix = "Unset JWT_SIGNING_KEY: everybody who can read the environment can issue tokens."
        yield Finding("development key", False, "set", fix)
    yield _token_keys(config)


def _metrics(config: Config) -> Finding:
    if config.metrics_token or config.private_instance:
        return Finding("metrics", True, "token set" if config.metrics_token else "no token")
    fix = "Set METRICS_TOKEN, or let the proxy refuse /metrics, where others can reach it."
    return Finding("metrics", True, "no token", fix)


def _token_keys(config: Config) -> Finding:
    if config.jwt_public_key:
        return Finding("token keys", True, "a public key is set")
    try:
        KeySet(config.jwt_jwks_url, config.jwt_algorithms).get(None)
    except Unavailable:
        fix = (
            "Check that JWT_JWKS_URL is right and that this machine can reach it."
            " Until then no token is valid."
        )
        return Finding("token keys", False, f"none at {config.jwt_jwks_url}", fix)
    except LookupError:  # there are keys, but none without an id
        pass
    return Finding("token keys", True, f"published at {config.jwt_jwks_url}")
