"""The recorded requests and answers of a FastAPI service: to read, to send, to judge.

Levels, each including the one before: L0 the status; L1 the locations and types of the errors;
L2 their order and messages; L3 the whole body.
"""

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from flask import Flask
from werkzeug.test import create_environ, run_wsgi_app

LEVELS = ("L0", "L1", "L2", "L3")

Case = dict[str, Any]
Answer = tuple[int, Any]


def load_cases() -> list[Case]:
    """The scored cases of ``cases-*.json`` beside this file, or below ``CONFORMANCE_DIR``.

    Cases with ``"scored": false`` depend on FastAPI's own server or differ here by decision.
    """
    root = Path(os.environ.get("CONFORMANCE_DIR", Path(__file__).parent))
    folder = root / "fastapi" if (root / "fastapi").is_dir() else root
    files = sorted(folder.glob("cases-*.json"))
    cases = [case for file in files for case in json.loads(file.read_text(encoding="utf-8"))]
    return [case for case in cases if case.get("scored", True)]


def send(app: Flask, case: Case, ids: Mapping[str, str], token: str) -> Answer:
    """Status and body (JSON, else text); path, query and body exactly as recorded."""
    path = re.sub(r"\{(\w+)\}", lambda match: ids[match[1]], case["path"])
    headers = {**(case["headers"] or {}), "Authorization": f"Bearer {token}"}
    environ = create_environ("/", method=case["method"], data=_body(case), headers=headers)
    environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1")
    environ["QUERY_STRING"] = case["query"] or ""
    if "Content-Type" not in headers:
        environ.pop("CONTENT_TYPE", None)
    chunks, status, _ = run_wsgi_app(app, environ)
    text = b"".join(chunks).decode()
    try:
        return int(status.split()[0]), json.loads(text)
    except ValueError:
        return int(status.split()[0]), text


def levels(case: Case, answer: Answer) -> dict[str, bool]:
    """Which levels ``answer`` reaches; a Python version's own wording counts as well."""
    wanted = [case["expect_body"], *(alt["body"] for alt in case.get("expect_body_alt") or [])]
    return max(
        (_judge(case, body, answer) for body in wanted), key=lambda found: sum(found.values())
    )


def _judge(case: Case, wanted: Any, answer: Answer) -> dict[str, bool]:
    status, got = answer
    if case["expect_status"] == 200:
        return dict.fromkeys(LEVELS, 200 <= status < 300)
    reached = [
        status == case["expect_status"],
        Counter(map(str, _places(wanted))) == Counter(map(str, _places(got))),
        _messages(wanted) == _messages(got),
        _exact(case.get("expect_text", "") if wanted is None else wanted) == _exact(got),
    ]
    return {level: all(reached[: index + 1]) for index, level in enumerate(LEVELS)}


def _errors(body: Any) -> list[dict[str, Any]]:
    detail = body.get("detail") if isinstance(body, dict) else None
    return detail if isinstance(detail, list) else []


def _places(body: Any) -> list[tuple]:
    return [(error["loc"], error["type"]) for error in _errors(body)]


def _messages(body: Any) -> Any:
    if isinstance(body, dict) and not _errors(body):
        return body.get("detail")
    return [(error["loc"], error["type"], error["msg"]) for error in _errors(body)]


def _exact(body: Any) -> str:
    return json.dumps(body, sort_keys=True)  # tells 1, 1.0 and true apart


def _body(case: Case) -> bytes:
    if case["body"] is None:
        return b""
    if case["body_encoding"] == "base64":
        return base64.b64decode(case["body"])
    return case["body"].encode()
