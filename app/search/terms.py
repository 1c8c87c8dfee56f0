"""Search terms: the forms of a text under which its row is found.

A text is folded: without case and accents, each run of other characters than letters and digits
is one space. A query is folded in the same way. So ``Jörg.Weiß@Example.com`` is found by
``jorg weiss`` and by ``JORG.W``. A term begins with one word of the text, and the following words
come after it. So a prefix of terms finds several words in their order too.
"""

from __future__ import annotations

import re
from unicodedata import category, normalize

MAX_TEXT = 255  # characters of a text that are indexed
MAX_TERM = 64  # characters
MAX_WORDS = 10  # of a text, at which a term begins

SEPARATORS = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """The words of a text in the form that is compared, with single spaces between them."""
    if not text.isascii():
        parts = normalize("NFKD", text)
        text = "".join(one for one in parts if not category(one).startswith("M"))
    return SEPARATORS.sub(" ", text.casefold()).strip()


def name_terms(folded: str) -> list[str]:
    """A term for each word; the words before it come last, so ``lovelace ada`` finds Ada too."""
    words = folded.split()
    count = min(len(words), MAX_WORDS)
    return [_term([*words[place:], *words[:place]]) for place in range(count)]


def address_terms(folded: str) -> list[str]:
    """A term for each word of an e-mail address except the last, such as ``com``."""
    words = folded.split()
    count = min(max(len(words) - 1, 1), MAX_WORDS, len(words))
    return [_term(words[place:]) for place in range(count)]


def id_terms(folded: str) -> list[str]:
    """One term: an id is found from its beginning only."""
    return [folded[:MAX_TERM]] if folded else []


def _term(words: list[str]) -> str:
    return " ".join(words)[:MAX_TERM]
