"""``s3``: one object for each batch, at any service with the interface of Amazon S3."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from urllib.parse import quote

import requests
from requests_aws4auth import AWS4Auth

from app.core.json_text import Json
from app.core.validation.fields import Str
from app.core.validation.schemas import Schema
from app.log_streams.kinds.kind import Batch, Kind, Refused, Unavailable, check, send
from app.webhooks.endpoints.schemas import ADDRESS, MAX_URL, Url

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
SKEWED = "The clock of this service differs from the target's by more than 15 minutes."


class S3ConfigSchema(Schema):
    """A bucket and a key that may write to it (`s3:PutObject`)."""

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
    access_key_id = Str(required=True, pattern="^[!-~]{1,200}$")
    secret_access_key = Str(required=True, pattern="^[!-~]{1,200}$", description="Secret.")


def deliver(batch: Batch, config: Mapping[str, Json]) -> None:
    """Put the object. A retry puts the same one again, so each event is there once."""
    path = quote(f"{config['bucket']}/{config['prefix']}{batch.name}.ndjson.gz")
    url = f"{config['endpoint'].rstrip('/')}/{path}"
    body, headers = gzip.compress(batch.ndjson(), 6, mtime=0), {"Content-Type": "application/gzip"}
    keys = (config["access_key_id"], config["secret_access_key"], config["region"])
    request = requests.Request("PUT", url, headers, data=body, auth=AWS4Auth(*keys, "s3"))
    signed = {name: str(value) for name, value in request.prepare().headers.items()}
    answer = send("PUT", url, body, signed)
    found = CODE.search(answer.body)
    code = found[1].decode() if found else ""
    if code in REFUSALS:
        raise Refused(REFUSALS[code])
    if code == "RequestTimeTooSkewed":
        raise Unavailable(SKEWED)
    check(answer, "key")


S3 = Kind(schema=S3ConfigSchema, secrets={"secret_access_key"}, deliver=deliver)
