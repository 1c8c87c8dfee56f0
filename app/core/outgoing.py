"""Requests to other services, with limits on time and size.

Use :func:`guarded` for URLs that tenants or messages supply. Its client connects to public
addresses only. It resolves a host name once, checks the IP address and connects to that address
(requests-hardened does this). So a second answer of the name server has no effect. Use
:data:`OPERATOR` for URLs that the operator configures; that client connects to any address.

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
KEPT_HOSTS, KEPT_CONNECTIONS = 100, 5  # hosts in the connection pool, and connections to each
WEEK = 7 * 86_400  # seconds
PUBLIC_ONLY = "only public addresses are allowed"
NOT_PUBLIC = (ip_network("::/96"), ip_network("::ffff:0:0:0/96"), ip_network("fec0::/10"))
"""Networks that requests-hardened does not refuse."""


class FetchFailed(Exception):
    """There is no usable answer. ``status`` is the answer's status if it is not 200, else None."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class AddressRefused(FetchFailed):
    """The URL is malformed, or its scheme or its address is not allowed."""


@dataclass(frozen=True)
class Answer:
    """An answer. ``is_cut``: ``body`` is only the beginning, because it exceeded ``max_bytes``."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


class Outgoing:
    """An HTTP client that all threads can share. It reuses connections and refuses cookies.

    ``only_public`` refuses private addresses and schemes other than https, and follows no redirect.
    A client with ``only_public`` sends its ``proxy`` the IP address of the host, not its name.
    ``environment`` reads the proxy from HTTPS_PROXY and the like.
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

        The time-out does not interrupt the DNS look-up. At most ``max_bytes`` of the answer's body
        are returned.
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
        """GET the body; raises FetchFailed if the status is not 200 or the body is too large."""
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
    """The client for URLs that tenants or messages supply.

    ``WEBHOOK_ALLOW_PRIVATE=1`` allows private addresses and http. ``WEBHOOK_PROXY`` names a proxy.
    """
    client: Outgoing = current_app.extensions["guarded_outgoing"]
    return client


def check_url(url: str, *, only_public: bool = True) -> None:
    """Raise AddressRefused for a URL that is not allowed. Host names are not resolved.

    With ``only_public`` the scheme must be https. If the host is an IP address, it must be public.
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
    """Whether the host is a public IP address. True for a name other than localhost."""
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
    address = getattr(address, "ipv4_mapped", None) or address
    is_refused = address.is_multicast or any(address in network for network in NOT_PUBLIC)
    return address.is_global and not is_refused


def retry_after(text: str) -> float:
    """The seconds of a ``Retry-After`` header, at most a week; 0 if it is absent or wrong."""
    try:
        return urllib3.Retry(retry_after_max=WEEK).parse_retry_after(text)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


TLS = ssl.create_default_context()
"""The system's certificate authorities, which take 20 ms to read. All connections share them."""


class _Adapter(HTTPAdapter):
    """requests' adapter with watched connections."""

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        super().init_poolmanager(KEPT_HOSTS, KEPT_CONNECTIONS, ssl_context=TLS)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> urllib3.ProxyManager:
        manager: urllib3.ProxyManager
        manager = super().proxy_manager_for(proxy, **options, ssl_context=TLS)
        manager.pool_classes_by_scheme = POOLS
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        if verify is not True:
            super().cert_verify(conn, url, verify, cert)


class _PublicAdapter(IPFilterAdapter, _Adapter):
    """Resolves the host name, and connects to the IP address if it is public."""

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
    """What the system says of the innermost cause, such as "Connection refused", else its type.

    Other messages are left out, as they can contain addresses.
    """
    while inner := fault.__cause__ or fault.__context__:
        fault = inner
    return getattr(fault, "strerror", None) or type(fault).__name__


OPERATOR = Outgoing(only_public=False, environment=True)
"""The client for URLs that the operator configures. ``HTTPS_PROXY`` and the like apply to it."""
