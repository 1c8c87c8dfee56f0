"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` applied, exactly as section 2 of the RFC has it; neither changes.

    Null removes a key, objects merge, anything else (arrays too) replaces. Keys keep their place,
    new ones follow in the patch's order. It recurses as deep as the patch does.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
