"""How a text becomes the terms under which it is found."""

from __future__ import annotations

import pytest

from app.search.terms import MAX_TERM, MAX_WORDS, address_terms, fold, id_terms, name_terms


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


class TestTerms:
    def test_of_a_name_begin_with_each_word_and_have_all_words(self):
        assert name_terms("ana maria lopez") == [
            "ana maria lopez",
            "maria lopez ana",
            "lopez ana maria",
        ]

    def test_of_an_address_begin_with_each_word_but_the_last(self):
        assert address_terms("ada lovelace example com") == [
            "ada lovelace example com",
            "lovelace example com",
            "example com",
        ]

    def test_of_an_address_of_one_word_are_that_word(self):
        assert address_terms("root") == ["root"]

    def test_of_an_id_begin_with_its_beginning_only(self):
        assert id_terms("user 01jz") == ["user 01jz"]

    @pytest.mark.parametrize("terms_of", [name_terms, address_terms, id_terms])
    def test_of_nothing_are_none(self, terms_of):
        assert terms_of("") == []

    @pytest.mark.parametrize("terms_of", [name_terms, address_terms, id_terms])
    def test_are_few_and_short(self, terms_of):
        terms = terms_of("word " * 50 + "x" * 1000)

        assert len(terms) <= MAX_WORDS
        assert max(map(len, terms)) <= MAX_TERM
