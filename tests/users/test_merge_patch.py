"""RFC 7396, by its own examples and by properties."""

import copy
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.custom_fields.metadata import merge_patch

FOLDER = Path(os.environ.get("CONFORMANCE_DIR") or Path(__file__).parents[1] / "conformance")
VECTORS = json.loads((FOLDER / "merge-patch.json").read_text())

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


class TestMergePatch:
    @pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: json.dumps(vector["patch"])[:40])
    def test_gives_the_result_of_the_rfc(self, vector):
        merged = merge_patch(vector["target"], vector["patch"])

        assert json.dumps(merged) == json.dumps(vector["result"])

    @settings(deadline=None)
    @given(VALUES, VALUES)
    def test_leaves_target_and_patch_as_they_were(self, target, patch):
        before = copy.deepcopy((target, patch))

        merge_patch(target, patch)

        assert (target, patch) == before

    @settings(deadline=None)
    @given(VALUES, VALUES)
    def test_changes_nothing_the_second_time(self, target, patch):
        once = merge_patch(target, patch)

        assert merge_patch(once, patch) == once

    @settings(deadline=None)
    @given(VALUES)
    def test_of_nothing_changes_nothing_in_an_object(self, target):
        assert merge_patch({"a": target}, {}) == {"a": target}

    @settings(deadline=None)
    @given(
        st.dictionaries(st.sampled_from("ab"), VALUES),
        st.dictionaries(st.sampled_from("cd"), VALUES),
    )
    def test_of_other_keys_leaves_a_key_alone(self, target, patch):
        merged = merge_patch(target, patch)

        assert {key: merged[key] for key in target} == target
