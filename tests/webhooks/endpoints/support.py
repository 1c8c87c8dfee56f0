"""What the tests of webhook endpoints share."""

from typing import Any

from tests.factories import create_member, platform_token

URL = "https://hooks.example.com/billing"


def create_endpoint(api: Any, token: str | None = None, **values: Any) -> dict[str, Any]:
    """A new endpoint, with its secret; of the platform unless the token is a tenant's."""
    query = {"tenant_id": values.pop("tenant_id")} if "tenant_id" in values else {}
    body = {"url": URL, "types": ["*"], **values}
    answer = api.post(
        "/v1/webhook-endpoints", token=token or platform_token(), json=body, query_string=query
    )
    assert answer.status_code == 201, answer.text
    return answer.get_json()["data"]


def token_of(tenant: Any, role: str = "owner") -> str:
    """The token of a new member."""
    return create_member(tenant, role=role)[2]
