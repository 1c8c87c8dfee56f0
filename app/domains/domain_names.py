"""Names of domains: their stored form, and which of them nobody can verify."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import idna
from tldextract import TLDExtract

CHALLENGE = "_controlplane-challenge."
MAX_NAME = 253 - len(CHALLENGE)
FREE_MAIL = Path(__file__).parent / "vendor" / "free-mail-domains.json.gz"
MORE_FREE_MAIL = Path(__file__).with_name("more-free-mail-domains.txt")


def to_ascii(name: str) -> str:
    """The name as A-labels (IDNA 2008, UTS 46), in lower case; ValueError for any other text."""
    try:
        encoded = idna.encode(name.removesuffix("."), uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        raise ValueError("this is not the name of a domain") from None
    if "." not in encoded or encoded.rpartition(".")[2].isdigit():  # an IP address
        raise ValueError("this is not the name of a domain")
    if len(encoded) > MAX_NAME:
        raise ValueError(f"a name has at most {MAX_NAME} characters")
    return encoded


def domain_of(address: str) -> str | None:
    """The domain of an e-mail address as A-labels; None if it is not the name of a domain."""
    try:
        return to_ascii(address.rpartition("@")[2])
    except ValueError:
        return None


def with_parents(name: str) -> Iterator[str]:
    """The name and each domain that it is a subdomain of, the longest first."""
    while name:
        yield name
        name = name.partition(".")[2]


def with_reversed_labels(name: str) -> str:
    """``com.example.mail`` of ``mail.example.com``: the subdomains of a name begin alike."""
    return ".".join(reversed(name.split(".")))


def is_public_suffix(name: str) -> bool:
    """Whether anybody can register names below this name, as below ``co.uk``."""
    return not _public_suffixes()(name, include_psl_private_domains=True).domain


def is_free_mail(name: str) -> bool:
    """Whether anybody can have an address at this domain."""
    return name in _free_mail_domains()


@cache
def _public_suffixes() -> TLDExtract:
    """The list that the package contains: without its cache, it never reads another list."""
    return TLDExtract(cache_dir=None, suffix_list_urls=())


@cache
def _free_mail_domains() -> frozenset[str]:
    """Those of the list of a package, and those that it lacks."""
    listed = json.loads(gzip.decompress(FREE_MAIL.read_bytes()))
    return frozenset((*listed, *MORE_FREE_MAIL.read_text().split()))
