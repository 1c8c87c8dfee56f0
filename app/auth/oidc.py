"""Signing in by OpenID Connect: authorization code with PKCE, state and nonce (RFC 7636, RFC 9700).

Authlib makes the protocol's requests. The ID token is verified in the same way as the API's user
tokens, and the subject and organization claims have the same names.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jwt

from app.auth.published import Published
from app.auth.tokens import LEEWAY, Claims, KeySet
from app.config import Config
from app.core.deadlines import TooSlow, limited
from app.core.errors import Unauthenticated, Unavailable
from app.core.json_text import Json
from app.core.outgoing import OPERATOR

DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT = 5.0  # seconds within which the provider must exchange a code for a token
REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]


class ProviderUnavailable(Unavailable):
    code = "identity_provider_unavailable"
    detail = "The identity provider does not answer."


class SignInRefused(Unauthenticated):
    """The provider did not sign the person in, or the provider's answer is not valid."""


@dataclass(frozen=True)
class Attempt:
    """A sign-in that has begun: the values that the provider's answer must match."""

    nonce: str = field(default_factory=secrets.token_urlsafe)
    verifier: str = field(default_factory=partial(secrets.token_urlsafe, 48))


class IdentityProvider:
    """The identity provider at OIDC_ISSUER. In each process one thread at a time waits for it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()  # held by the thread that waits for the provider
        url = config.oidc_issuer.rstrip("/") + DISCOVERY
        self._metadata = Published(url, self._read, self._lock)
        self.keys: KeySet | None = None

    @property
    def is_configured(self) -> bool:
        return bool(self._config.oidc_issuer)

    def authorization_url(self, attempt: Attempt, state: str, redirect_uri: str) -> str:
        """The URL to which the browser goes to sign in; raises ProviderUnavailable."""
        url, _ = self._client(redirect_uri).create_authorization_url(
            self._discover()["authorization_endpoint"],
            state=state,
            nonce=attempt.nonce,
            code_verifier=attempt.verifier,
        )
        return str(url)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Run the block, which calls :meth:`redeem`, in one thread of the process at a time.

        Another thread gets ProviderUnavailable. Its header ``Refresh: 1`` makes the browser retry.
        """
        if not self._lock.acquire(blocking=False):
            busy = ProviderUnavailable()
            busy.headers["Refresh"] = "1"
            raise busy
        try:
            yield
        finally:
            self._lock.release()

    def redeem(self, code: str, attempt: Attempt, redirect_uri: str) -> Claims:
        """Exchange the code for the claims of the person who has signed in.

        Raises ProviderUnavailable, or SignInRefused if the code or the ID token is not valid.
        """
        from authlib.common.errors import AuthlibBaseError
        from requests import RequestException

        try:
            client = self._client(redirect_uri)
            OPERATOR.lend_adapters(client)
            with limited(TIMEOUT):
                token = client.fetch_token(
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
        except (RequestException, ValueError, TooSlow):
            raise ProviderUnavailable from None
        return self.verify(str(token.get("id_token", "")), attempt)

    def verify(self, id_token: str, attempt: Attempt) -> Claims:
        """The claims of an ID token; raises SignInRefused if the token is not valid."""
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
        """Authlib's client. The import is here, because only installations with OIDC need it."""
        from authlib.integrations.requests_client import OAuth2Session

        return OAuth2Session(
            self._config.oidc_client_id,
            self._config.oidc_client_secret,
            scope="openid email",
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
        )

    def _discover(self) -> dict[str, str]:
        """The provider's metadata (OpenID Connect Discovery); raises ProviderUnavailable."""
        if self._metadata.is_old:
            self._metadata.refresh(wait=False)
        if self._metadata.content is None:
            raise ProviderUnavailable
        return self._metadata.content

    def _read(self, metadata: Json) -> dict[str, str]:
        if metadata["issuer"] != self._config.oidc_issuer:
            raise ValueError("the metadata is of another issuer")
        self.keys = KeySet(str(metadata["jwks_uri"]), self._config.jwt_algorithms)
        return {name: str(metadata[name]) for name in ("authorization_endpoint", "token_endpoint")}
