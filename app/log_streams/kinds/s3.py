"""``s3``: one object for each batch, at any service with the interface of Amazon S3."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, urlencode

import requests
from requests_aws4auth import AWS4Auth

from app.config import current_config
from app.core.errors import Entry, value_error
from app.core.json_text import Json
from app.core.outgoing import Answer, guarded
from app.core.validation.fields import Str
from app.core.validation.messages import refused
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import Batch, Failed, Kind, Refused, check, send
from app.webhooks.endpoints.schemas import ADDRESS, MAX_URL, Url

AWS = re.compile(r"https://s3\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/?")
CODE = re.compile(rb"<Code>(\w+)</Code>")
REFUSALS = {
    "AccessDenied": "The key may not write to the bucket (s3:PutObject).",
    "AuthorizationHeaderMalformed": "The bucket is in another region.",
    "InvalidAccessKeyId": "The access key id is not known.",
    "NoSuchBucket": "The bucket does not exist.",
    "PermanentRedirect": "The bucket is in another region.",
    "SignatureDoesNotMatch": "The secret access key does not belong to the access key id.",
}
"""The code of an error -> what is wrong with the settings."""
KEYS = re.compile("<(AccessKeyId|SecretAccessKey|SessionToken)>([^<]+)<")
REUSED = 1_800  # seconds for which the keys of a role are reused; they are valid for an hour
ROLE = "^(arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,500})?$"
OF_ROLE = "for a role it must be https://s3.<region>.amazonaws.com"
NO_KEYS = "This service has no AWS keys of its own, so it cannot use a role."
SKEWED = "The clock of this service differs from the target's by more than 15 minutes."


class S3ConfigSchema(Schema):
    """A bucket, and a key or a role that may write to it (`s3:PutObject`)."""

    examples = {
        "endpoint": "https://s3.eu-west-1.amazonaws.com",
        "region": "eu-west-1",
        "bucket": "acme-logs",
        "prefix": "controlplane/",
        "access_key_id": "AKIAIOSFODNN7EXAMPLE",
        "secret_access_key": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    }

    endpoint = Url(required=True, min_length=1, max_length=MAX_URL, metadata=ADDRESS)
    region = Str(required=True, pattern="^[a-z0-9-]{1,50}$")
    bucket = Str(required=True, pattern="^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    prefix = Str(load_default="", max_length=500, pattern="^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)*$")
    access_key_id = Str(load_default="", pattern="^[!-~]{0,200}$")
    secret_access_key = Str(load_default="", pattern="^[!-~]{0,200}$", description="Secret.")
    role_arn = Str(load_default="", pattern=ROLE, description="In place of a key.")

    def rules(self, values: dict[str, Json]) -> Iterator[Entry]:
        """Demand a key or a role, whose requests to STS only AWS may get."""
        if values["role_arn"] and guarded().only_public and not AWS.fullmatch(values["endpoint"]):
            yield value_error(("endpoint",), OF_ROLE, values["endpoint"])
        for name in ("access_key_id", "secret_access_key"):
            if not values["role_arn"] and not values[name]:
                yield refused("missing", (name,), None)


def deliver(batch: Batch, config: Mapping[str, Json]) -> None:
    """Put the object. A retry puts the same object again, so each event is in the bucket once."""
    path = quote(f"{config['bucket']}/{config['prefix']}{batch.name}.ndjson.gz")
    url = f"{config['endpoint'].rstrip('/')}/{path}"
    body, headers = gzip.compress(batch.ndjson(), 6, mtime=0), {"Content-Type": "application/gzip"}
    key_id, secret, token = _keys(config)
    auth = AWS4Auth(key_id, secret, config["region"], "s3", session_token=token)
    answer, code = _send("PUT", url, body, headers, auth)
    if code in REFUSALS:
        raise Refused(REFUSALS[code])
    if code == "RequestTimeTooSkewed":
        raise Failed(SKEWED)
    check(answer, "key")
    if code:  # some services begin an answer with 200 before they have written
        raise Failed(f"The target answers with the error {code}.")


def _keys(config: Mapping[str, Json]) -> tuple[str, str, str]:
    """The id of a key, its secret, and the token of a role's session."""
    if not config["role_arn"]:
        return config["access_key_id"], config["secret_access_key"], ""
    own = current_config()
    if not own.aws_access_key_id:
        raise Refused(NO_KEYS)
    url = config["endpoint"].rstrip("/").replace("//s3.", "//sts.")
    key = (own.aws_access_key_id, own.aws_secret_access_key, config["region"])
    return _assume_role(url, config["role_arn"], config["owner"], key, time.monotonic() // REUSED)


@lru_cache(maxsize=256)
def _assume_role(
    url: str, role: str, external_id: str, key: tuple[str, str, str], _: float
) -> tuple[str, str, str]:
    """As :func:`_keys`, with a role that demands the external id; raises Failed.

    So nobody uses a role of another customer, or one of the operator's own account.
    """
    form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleSessionName": "controlplane"}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for condition in ({}, {"ExternalId": external_id}):
        body = urlencode({**form, "RoleArn": role, **condition}).encode()
        answer, code = _send("POST", f"{url}/", body, headers, AWS4Auth(*key, "sts"))
        if not condition and answer.status == 200:
            raise Refused(f"The role must demand the external id {external_id}.")
        if code != "AccessDenied":
            break
    else:
        raise Refused(f"The role does not trust this service with the external id {external_id}.")
    found = dict(KEYS.findall(answer.body.decode(errors="replace")))
    if answer.status != 200 or len(found) < 3:
        raise Failed(f"AWS gives no keys of the role (status {answer.status} {code}).")
    return found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]


def _send(
    method: str, url: str, body: bytes, headers: Mapping[str, str], auth: AWS4Auth
) -> tuple[Answer, str]:
    """Send a signed request; the answer, and the code of an error in it."""
    request = requests.Request(method, url, headers, data=body, auth=auth)
    signed = {name: str(value) for name, value in request.prepare().headers.items()}
    answer = send(method, url, body, signed)
    found = CODE.search(answer.body)
    return answer, found[1].decode() if found else ""


S3 = Kind(schema=S3ConfigSchema, secrets={"secret_access_key"}, deliver=deliver)
