"""Requests to other services, with limits on time and size.

Addresses that tenants or messages supply are requested by :func:`guarded`, which connects to public
addresses only. It resolves the name once, checks the address and connects to it, so that a second
answer of the name server changes nothing (requests-hardened does this). The operator's own
addresses are requested by :data:`OPERATOR`, without that guard.

TLS certificates are verified against the system's certificate authorities.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from flask import current_app
from requests.adapters import HTTPAdapter
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from app.core.deadlines import POOLS, TooSlow, limited

USER_AGENT = "controlplane"
KEPT_HOSTS, KEPT_CONNECTIONS = 100, 5  # whose connections are used again, and how many of each
PUBLIC_ONLY = "only public addresses are allowed"
NOT_PUBLIC = (ip_network("::/96"), ip_network("::ffff:0:0:0/96"), ip_network("fec0::/10"))
"""Networks that requests-hardened does not refuse."""


class FetchFailed(Exception):
    """``status`` is the answer's status if it is not 200; None without a complete answer."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class AddressRefused(FetchFailed):
    """The address is not a public one, or the scheme is not https."""


@dataclass(frozen=True)
class Answer:
    """A complete answer. ``body`` has at most as many bytes as were asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


class Outgoing:
    """A client, for any thread. Connections are used again; cookies are refused.

    ``only_public`` refuses addresses that are not public, schemes other than https, and redirects.
    ``proxy`` gets the address, and not the name, of the host to connect to.
    """

    def __init__(self, *, only_public: bool, proxy: str = "", environment: bool = False) -> None:
        self.only_public = only_public
        self._session = requests.Session()
        self._session.trust_env = environment
        self._session.proxies.update({"http": proxy, "https": proxy} if proxy else {})
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        if only_public:
            self._session.mount("https://", _PublicAdapter())
            del self._session.adapters["http://"]
        else:
            adapter = _Adapter()
            self._session.mount("https://", adapter)
            self._session.mount("http://", adapter)

    def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float,
        max_bytes: int,
        follow_redirects: bool = False,
    ) -> Answer:
        """Send one request; raises FetchFailed if there is no answer within ``timeout`` seconds.

        The time includes all but the search for the host's address. The body of the answer is read
        up to ``max_bytes``.
        """
        if self.only_public:
            check_url(url)
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})}
        try:
            with (
                limited(timeout),
                self._session.request(
                    method,
                    url,
                    data=body,
                    headers=sent,
                    timeout=timeout,
                    allow_redirects=follow_redirects and not self.only_public,
                    stream=True,
                ) as answer,
            ):
                content = answer.raw.read(max_bytes + 1, decode_content=False)
                is_cut = len(content) > max_bytes
                return Answer(answer.status_code, answer.headers, content[:max_bytes], is_cut)
        except TooSlow:
            raise FetchFailed("the answer takes too long") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as fault:
            raise FetchFailed(f"no answer: {_reason(fault)}") from fault
        except ValueError as fault:  # such as a host name that IDNA cannot encode
            raise AddressRefused(f"the address cannot be used: {type(fault).__name__}") from None

    def fetch(
        self, url: str, *, timeout: float, max_bytes: int, follow_redirects: bool = False
    ) -> bytes:
        """The body of a 200 answer; raises FetchFailed."""
        answer = self.send(
            "GET", url, timeout=timeout, max_bytes=max_bytes, follow_redirects=follow_redirects
        )
        if answer.status != 200:
            raise FetchFailed(f"status {answer.status}", answer.status)
        if answer.is_cut:
            raise FetchFailed("the answer is too large")
        return answer.body

    def lend_adapters(self, session: requests.Session) -> None:
        """Let ``session`` send as this client does, so that :func:`limited` ends its requests."""
        for prefix, adapter in self._session.adapters.items():
            session.mount(prefix, adapter)


def guarded() -> Outgoing:
    """For addresses that tenants or messages supply.

    ``WEBHOOK_ALLOW_PRIVATE=1`` turns the guard off, and ``WEBHOOK_PROXY`` names a proxy.
    """
    client: Outgoing = current_app.extensions["guarded_outgoing"]
    return client


def check_url(url: str, *, only_public: bool = True) -> None:
    """Raise AddressRefused for a URL that is wrong by itself, whatever address its host has.

    With ``only_public`` it must be https, and an address as its host must be public.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise AddressRefused("this is not a URL") from None
    if not url.isascii() or not url.isprintable() or " " in url:
        raise AddressRefused("only printable ASCII characters are allowed")
    schemes = ("https",) if only_public else ("http", "https")
    if not host or parts.scheme not in schemes:
        raise AddressRefused(f"this is not an {' or '.join(schemes)} URL")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("a user name or a password is not allowed")
    if only_public and not is_public(host):
        raise AddressRefused(PUBLIC_ONLY)


def is_public(host: str) -> bool:
    """Whether the host is a public address; True for a name, which must be resolved."""
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
    address = getattr(address, "ipv4_mapped", None) or address
    is_refused = address.is_multicast or any(address in network for network in NOT_PUBLIC)
    return address.is_global and not is_refused


class _Adapter(HTTPAdapter):
    """requests' adapter with watched connections and one TLS context for all of them.

    Without it each connection would read the certificate authorities again, which takes 20 ms.
    """

    def __init__(self) -> None:
        self._tls = ssl.create_default_context()  # with the system's certificate authorities
        super().__init__()

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        super().init_poolmanager(KEPT_HOSTS, KEPT_CONNECTIONS, ssl_context=self._tls)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> urllib3.ProxyManager:
        manager: urllib3.ProxyManager
        manager = super().proxy_manager_for(proxy, **options, ssl_context=self._tls)
        manager.pool_classes_by_scheme = POOLS
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        if verify is not True:
            super().cert_verify(conn, url, verify, cert)


class _PublicAdapter(IPFilterAdapter, _Adapter):
    """Connects to the address that the name has now, if that address is public."""

    def __init__(self) -> None:
        super().__init__(is_https_proto=True)  # type: ignore[call-arg]  # its types are unknown

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> Any:
        try:
            host, options = super().build_connection_pool_key_attributes(request, verify, cert)
        except requests.ConnectionError:
            raise
        except requests.RequestException:
            raise AddressRefused(PUBLIC_ONLY) from None
        if not is_public(host["host"].strip("[]")):
            raise AddressRefused(PUBLIC_ONLY)
        return host, options


def _reason(fault: BaseException) -> str:
    """The type of the innermost cause, without values such as addresses."""
    inner = fault.args[0] if fault.args else None
    while isinstance(inner, BaseException):
        reason = getattr(inner, "reason", None)  # a text for faults of TLS
        fault = reason if isinstance(reason, BaseException) else inner
        inner = fault.args[0] if fault.args else None
    return type(fault).__name__


OPERATOR = Outgoing(only_public=False, environment=True)
"""For the operator's own addresses; uses the proxies of the environment."""
