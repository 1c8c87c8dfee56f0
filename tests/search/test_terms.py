"""How a text becomes the terms under which it is found."""

import pytest

from app.search.terms import fold


class TestFold:
    @pytest.mark.parametrize(
        ("text", "folded"),
        [
            ("Ada Lovelace", "ada lovelace"),
            ("  Jörg\tWEISS ", "jorg weiss"),
            ("Weiß", "weiss"),
            ("Ångström", "angstrom"),
            ("e\u0301toile", "etoile"),
            ("İstanbul", "istanbul"),
            ("ﬁnance", "finance"),
            ("ＡＢＣ", "abc"),
            ("Ада", "ада"),
            ("ada.lovelace@example.com", "ada lovelace example com"),
            ("auth0|65f_1", "auth0 65f 1"),
            ("!?", ""),
            ("", ""),
        ],
    )
    def test_removes_case_accents_and_punctuation(self, text, folded):
        assert fold(text) == folded

    @pytest.mark.parametrize(
        "text", ["Jörg Weiß", "ΣΊΣΥΦΟΣ", "ŉ ǰ ΐ", "한국", "ガード", "\U0001f600 x"]
    )
    def test_of_a_folded_text_is_the_same(self, text):
        assert fold(fold(text)) == fold(text)
