"""Signing in by OpenID Connect: authorization code with PKCE, state and nonce (RFC 7636, RFC 9700).

Authlib writes the requests of the protocol. The ID token is verified as the API verifies user
tokens, and its claims have the same names.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

import jwt

from app.auth.tokens import LEEWAY, Claims, KeySet
from app.config import Config
from app.core.errors import Unauthenticated, Unavailable
from app.core.outgoing import OPERATOR, FetchFailed

DISCOVERY = "/.well-known/openid-configuration"
MAX_AGE = 3600.0  # seconds for which the provider's metadata is used
MAX_SIZE = 1 << 18  # bytes of the metadata
TIMEOUT = 5.0  # seconds for each answer of the provider
REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]


class ProviderUnavailable(Unavailable):
    """The identity provider does not answer."""

    code = "identity_provider_unavailable"
    detail = "The identity provider does not answer."


class SignInRefused(Unauthenticated):
    """The provider did not sign the person in, or its answer is not valid."""


@dataclass(frozen=True)
class Attempt:
    """A sign-in that has begun: what its answer has to match."""

    nonce: str
    verifier: str


def begin() -> Attempt:
    return Attempt(nonce=secrets.token_urlsafe(32), verifier=secrets.token_urlsafe(48))


class IdentityProvider:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._metadata: dict[str, str] = {}
        self._read_at = float("-inf")
        self.keys: KeySet | None = None

    @property
    def is_configured(self) -> bool:
        return bool(self._config.oidc_issuer)

    def authorization_url(self, attempt: Attempt, state: str, redirect_uri: str) -> str:
        """Where the browser goes to sign in; raises ProviderUnavailable."""
        url, _ = self._client(redirect_uri).create_authorization_url(
            self._discover()["authorization_endpoint"],
            state=state,
            nonce=attempt.nonce,
            code_verifier=attempt.verifier,
        )
        return str(url)

    def redeem(self, code: str, attempt: Attempt, redirect_uri: str) -> Claims:
        """The claims of the person who has signed in.

        Raises SignInRefused for a code or an ID token that is not valid, and ProviderUnavailable.
        """
        from authlib.common.errors import AuthlibBaseError
        from requests import RequestException

        try:
            token = self._client(redirect_uri).fetch_token(
                self._discover()["token_endpoint"],
                code=code,
                code_verifier=attempt.verifier,
                grant_type="authorization_code",
                redirect_uri=redirect_uri,
                timeout=TIMEOUT,
                allow_redirects=False,
            )
        except AuthlibBaseError:
            raise SignInRefused(reason="oidc_code") from None
        except (RequestException, ValueError):
            raise ProviderUnavailable from None
        return self.verify(str(token.get("id_token", "")), attempt)

    def verify(self, id_token: str, attempt: Attempt) -> Claims:
        """The claims of an ID token; raises SignInRefused for one that is not valid."""
        try:
            keys = self.keys
            if keys is None:
                raise LookupError("no keys")
            algorithm, key = keys.find(id_token)
            payload = jwt.decode(
                id_token,
                key,
                algorithms=[algorithm],
                issuer=self._config.oidc_issuer,
                audience=self._config.oidc_client_id,
                leeway=LEEWAY,
                options={"require": REQUIRED, "verify_iat": True},
            )
            if not secrets.compare_digest(str(payload["nonce"]).encode(), attempt.nonce.encode()):
                raise ValueError("another nonce")
            if payload.get("azp", self._config.oidc_client_id) != self._config.oidc_client_id:
                raise ValueError("issued to another client")
        except (jwt.PyJWTError, LookupError, ValueError, TypeError, OverflowError):
            raise SignInRefused(reason="oidc_id_token") from None
        return Claims.checked(payload, self._config)

    def _client(self, redirect_uri: str) -> Any:
        """Authlib's client. Imported here, because only services with a provider need it."""
        from authlib.integrations.requests_client import OAuth2Session

        return OAuth2Session(
            self._config.oidc_client_id,
            self._config.oidc_client_secret,
            scope="openid",
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
        )

    def _discover(self) -> dict[str, str]:
        """The provider's metadata (OpenID Connect Discovery); raises ProviderUnavailable."""
        issuer = self._config.oidc_issuer
        with self._lock:
            if time.monotonic() - self._read_at < MAX_AGE:
                return self._metadata
            try:
                url = issuer.rstrip("/") + DISCOVERY
                metadata = json.loads(OPERATOR.fetch(url, timeout=TIMEOUT, max_bytes=MAX_SIZE))
                if metadata["issuer"] != issuer:
                    raise ValueError("the metadata is of another issuer")
                names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
                self._metadata = {name: str(metadata[name]) for name in names}
            except (FetchFailed, ValueError, LookupError, TypeError):
                raise ProviderUnavailable from None
            self.keys = KeySet(self._metadata["jwks_uri"], self._config.jwt_algorithms)
            self._read_at = time.monotonic()
            return self._metadata
