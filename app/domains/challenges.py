"""Looks up the TXT record that shows whose a domain is. No answer can do more than fail."""

from __future__ import annotations

from collections.abc import Sequence

import dns.exception
import dns.resolver
from dns.nameserver import Do53Nameserver

from app.config_values import Address
from app.domains.models import CheckError

SECONDS = 4.5  # for all questions to all resolvers; a pause of half a second can follow
MAX_BYTES = 16_384  # of an answer
UDP_PAYLOAD = 1_232  # bytes; larger answers come over TCP


def check(name: str, value: str, resolvers: Sequence[Address]) -> CheckError | None:
    """Why no TXT record of the name has the value; None if one has.

    Takes 5 s at most. Without ``resolvers`` those of the system are asked.
    """
    try:
        answer = _resolver(resolvers).resolve(
            name, "TXT", lifetime=SECONDS, search=False, raise_on_no_answer=False
        )
    except dns.resolver.NXDOMAIN:
        return CheckError.NO_RECORD
    except (dns.resolver.LifetimeTimeout, dns.resolver.NoResolverConfiguration):
        return CheckError.NO_ANSWER
    except dns.exception.DNSException:
        return CheckError.BAD_ANSWER
    if len(answer.response.wire or b"") > MAX_BYTES:
        return CheckError.BAD_ANSWER
    texts = [b"".join(record.strings) for record in answer.rrset or ()]
    if value.encode() in texts:
        return None
    return CheckError.OTHER_VALUE if texts else CheckError.NO_RECORD


def _resolver(resolvers: Sequence[Address]) -> dns.resolver.Resolver:
    found = dns.resolver.Resolver(configure=not resolvers)
    if resolvers:
        found.nameservers = [Do53Nameserver(one.host, one.port) for one in resolvers]
    found.timeout = SECONDS / 3  # of a question
    found.use_edns(0, payload=UDP_PAYLOAD)
    return found
