"""Join requests that wait, and domains that have lost their record."""

WAITING = "SELECT FROM join_requests WHERE state = 'pending'"
LAPSED = "SELECT FROM domains WHERE state = 'lapsed'"
WORK = {
    "join_requests": (WAITING, "/v1/join-requests?state=pending"),
    "lapsed_domains": (LAPSED, "/v1/domains?state=lapsed"),
}
