"""Unknown query parameters: refused by every operation of /v1 but those that ignore them."""

import uuid

from tests.document import IGNORE_UNKNOWN_QUERY, operations
from tests.factories import platform_token

REFUSED = {
    "type": "extra_forbidden",
    "loc": ["query", "tenantId"],
    "msg": "Extra inputs are not permitted",
    "input": "x",
}


def refuses(api, one, token):
    path = one.path_of(str(uuid.uuid4()))
    call = getattr(api, one.method)
    options = {"json": {}} if one.method in ("post", "patch", "put") else {}
    answer = call(f"{path}?tenantId=x", token=token, **options)
    detail = answer.get_json(silent=True) or {}
    return answer.status_code == 422 and REFUSED in detail["detail"]


class TestUnknownParameters:
    def test_are_refused_by_every_operation_of_v1_but_the_listed_ones(self, app, api):
        document = api.get("/openapi.json").get_json()
        token = platform_token()

        ignoring = {
            f"{one.method.upper()} {one.path}"
            for one in operations(document)
            if one.path.startswith("/v1/") and not refuses(api, one, token)
        }

        assert ignoring == IGNORE_UNKNOWN_QUERY

    def test_are_ignored_outside_v1(self, api):
        assert api.get("/healthz?tenantId=x").status_code == 200
