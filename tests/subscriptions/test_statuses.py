"""The vocabulary of states."""

import pytest

from app.subscriptions.statuses import StatusClass, class_of

STRIPE = {
    "incomplete": "pending",
    "incomplete_expired": "ended",
    "trialing": "live",
    "active": "live",
    "past_due": "past_due",
    "canceled": "ended",
    "unpaid": "past_due",
    "paused": "paused",
}
CHARGEBEE = {
    "future": "pending",
    "in_trial": "live",
    "active": "live",
    "non_renewing": "live",
    "paused": "paused",
    "cancelled": "ended",
    "transferred": "ended",
}
LAGO = {"pending": "pending", "active": "live", "terminated": "ended", "canceled": "ended"}


class TestClassOf:
    @pytest.mark.parametrize("provider", [STRIPE, CHARGEBEE, LAGO])
    def test_knows_every_word_of_the_providers(self, provider):
        assert {word: class_of(word).value for word in provider} == provider

    def test_does_not_mind_capitals(self):
        assert class_of("Past_Due") is StatusClass.PAST_DUE

    @pytest.mark.parametrize("word", ["", "zombie", "active "])
    def test_has_a_class_for_words_of_none(self, word):
        assert class_of(word) is StatusClass.UNKNOWN
