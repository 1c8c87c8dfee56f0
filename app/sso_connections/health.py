"""SSO connections with a certificate that ends within 30 days."""

ENDING = """
    SELECT FROM sso_connections
    WHERE certificate_ends_at < now() + interval '30 days' AND state = 'active'
"""
LIST = "/v1/sso-connections?state=active&certificate_ends_before={month}"
WORK = {"ending_certificates": (ENDING, LIST)}
