"""The recorded webhook requests: where they are, and the configuration each one stands for.

They are read from ``tests/conformance/webhooks``, or from the folder named by
``CONFORMANCE_DIR`` (that folder itself, or ``webhooks`` inside it).
"""

import base64
import json
import os
from pathlib import Path
from typing import Any

Vector = dict[str, Any]

LEFT_OUT = {"jwt-rs256-body"}
"""Schemes that no preset offers: Kinde's body that is a JWT."""


def webhooks_folder() -> Path:
    folder = Path(os.environ.get("CONFORMANCE_DIR") or Path(__file__).parent)
    inner = folder / "webhooks"
    return inner if inner.is_dir() else folder


def load_vectors() -> list[Vector]:
    """Every vector that has a verdict and a preset."""
    files = sorted(webhooks_folder().glob("vectors*.json"))
    vectors = [vector for file in files for vector in json.loads(file.read_text())["vectors"]]
    return [v for v in vectors if verdict(v) != "either" and v["scheme"] not in LEFT_OUT]


def load_billing_vectors() -> list[Vector]:
    """The recorded requests of billing providers, from the folder ``billing``."""
    folder = Path(os.environ.get("CONFORMANCE_DIR") or Path(__file__).parent) / "billing"
    files = sorted(folder.glob("vectors*.json"))
    return [vector for file in files for vector in json.loads(file.read_text())]


def verdict(vector: Vector) -> str:
    return vector.get("recommended", vector["expect"])


def preset(vector: Vector) -> str:
    name = vector["provider"].replace("-", "_")
    return name + {"basic": "_basic", "custom_header": "_header"}.get(vector.get("mode"), "")


def scheme_text(vector: Vector) -> str:
    """The receiver's configuration under which the vector's verdict was given."""
    for several, one in (("secrets", "secret"), ("public_keys", "public_key")):
        if several in vector or one in vector:
            values = vector.get(several) or [vector[one]]
            break
    else:
        values = [vector["topic_arn"]]
    return " ".join(f"{preset(vector)}:{value.replace(': ', ':')}" for value in values)


def body(vector: Vector) -> bytes:
    return base64.b64decode(vector["body_base64"])
