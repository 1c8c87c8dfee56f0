"""The console's style sheets and scripts: read once, stored and sent compressed.

Their addresses contain a digest of the content, so browsers keep them for a year.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flask import Response, request, url_for

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CACHED = "public, max-age=31536000, immutable"
NAMES = ("pico.min.css", "console.css", "htmx.min.js", "console.js", "icon.svg")


@dataclass(frozen=True)
class Asset:
    """One file, compressed by gzip, and the digest of its content."""

    compressed: bytes
    digest: str
    content_type: str


@cache
def get_asset(name: str) -> Asset:
    """The file of this name, one of :data:`NAMES`; raises KeyError for any other."""
    if name not in NAMES:
        raise KeyError(name)
    vendored = FOLDER / "vendor" / f"{name}.gz"
    if vendored.exists():
        compressed = vendored.read_bytes()
    else:
        compressed = gzip.compress((FOLDER / name).read_bytes(), 9, mtime=0)
    digest = hashlib.sha256(compressed).hexdigest()[:16]
    return Asset(compressed, digest, f"{TYPES[Path(name).suffix]}; charset=utf-8")


def asset_url(name: str) -> str:
    return url_for("console.read_asset", digest=get_asset(name).digest, name=name)


def asset_response(name: str, digest: str) -> Response:
    """The file, compressed if the browser takes that.

    During an update a page of another version may ask for it, by another digest. Then it is not
    cached. Raises KeyError for an unknown name.
    """
    asset = get_asset(name)
    response = Response(asset.compressed, content_type=asset.content_type)
    if request.accept_encodings.quality("gzip") > 0:
        response.content_encoding = "gzip"
    else:
        response.data = gzip.decompress(asset.compressed)
    response.vary.add("Accept-Encoding")
    is_asked_for = asset.digest == digest
    response.headers["Cache-Control"] = CACHED if is_asked_for else "no-store"
    return response
