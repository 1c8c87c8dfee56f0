"""How pages say times and changes."""

import pytest

from app.audit.outbox import TARGET_TYPE_OF
from app.console import words


@pytest.mark.parametrize(
    ("amount", "currency", "said"),
    [
        (123450, "EUR", "1,234.50 EUR"),
        (4900, "JPY", "4,900 JPY"),
        (1500, "KWD", "1.500 KWD"),
        (4900, "", "49.00"),
        (9007199254740993, "USD", "90,071,992,547,409.93 USD"),
        (0, "CLP", "0 CLP"),
    ],
)
def test_amounts_have_the_digits_of_their_currency(amount, currency, said):
    assert words.money(amount, currency) == said


def event(action, before=None, after=None, **more):
    given = {"actor": "platform:ops", "target_type": action.partition(".")[0], **more}
    return {"action": action, "before": before or {}, "after": after or {}, **given}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            event("import.completed", after={"lines_done": 1200, "lines_failed": 3}),
            "ops (platform) imported 1,200 lines, 3 of which failed",
        ),
        (
            event(
                "override.updated",
                {"flag_value": 1000},
                {"flag_value": 2_000_000, "expires_at": None},
                actor_name="Ada",
                target_name="api-calls",
            ),
            "Ada raised api-calls to 2,000,000",
        ),
        (
            event("override.updated", {"flag_value": -1}, {"flag_value": 5}, target_name="seats"),
            "ops (platform) lowered seats to 5",
        ),
        (
            event("override.created", {}, {"flag_value": True}, target_name="sso"),
            "ops (platform) set sso to on",
        ),
        (
            event(
                "override.updated", {"flag_value": "a"}, {"flag_value": "b"}, target_name="theme"
            ),
            "ops (platform) changed theme to b",
        ),
        (
            event(
                "tenant.plan_assigned", {}, {"plan_name": "pro", "until": None, "reason": "pilot"}
            ),
            "ops (platform) assigned the plan pro: pilot",
        ),
        (
            event("user.updated", {"first_name": "A"}, {"first_name": "B"}, target_name="Ada"),
            "ops (platform) changed the user Ada (first name)",
        ),
        (
            event("limit.reached", {}, {}, actor="system:job", target_id="api-calls"),
            "api-calls is used up",
        ),
        (
            event("api_key.revoked", {"revoked_at": None}, {"revoked_at": "x"}),
            "ops (platform) revoked the API key",
        ),
        (
            event("override.deleted", {"flag_key": "theme", "flag_value": "rich"}),
            "ops (platform) ended the override of theme",
        ),
        (
            event("override.created", {}, {"flag_key": "support", "flag_value": "phone"}),
            "ops (platform) set support to phone",
        ),
        (event("trial.ending", {}, {"plan_name": "growth"}), "The assigned plan growth ends soon"),
        (
            event("plan_price.created", {}, {"price_id": "price_1", "plan_name": "growth"}),
            "ops (platform) gave the price price_1 the plan growth",
        ),
        (
            event("plan_price.deleted", {"price_id": None, "lookup_key": "team"}),
            "ops (platform) deleted the price team",
        ),
        (
            event("billing_customer.mapped", {}, {"tenant_id": "x"}, target_name="cus_1"),
            "ops (platform) chose the tenant of the customer cus_1",
        ),
        (
            event("billing_comparison.started", {}, {"provider": "stripe"}),
            "ops (platform) started the comparison with stripe",
        ),
    ],
)
def test_changes_are_sentences(change, said):
    assert str(words.sentence(change)) == said


def test_what_a_tenant_typed_is_text_in_a_sentence():
    change = event("user.created", {}, {}, actor_name="<b>Eve</b>", target_name="<script>")

    assert str(words.sentence(change)) == "&lt;b&gt;Eve&lt;/b&gt; created the user &lt;script&gt;"


def test_every_action_has_a_sentence():
    for action in TARGET_TYPE_OF:
        change = event(action, {"plan_name": "a"}, {"plan_name": "b", "percent": 80}, target_id="x")
        assert len(str(words.sentence(change)).split()) > 2 or action == "console.link_created", (
            action
        )


def test_permissions_are_said_by_what_they_allow():
    names = ["api_keys:read", "users:read", "users:write", "platform:superadmin"]

    assert words.permissions(names) == [("Read", "API keys, Users"), ("Write", "Users, Platform")]


def test_the_reader_is_you():
    event = {"actor": "platform:ops", "actor_name": None}

    assert words.who(event, "platform:ops") == "You"
    assert words.who(event, "platform:other") == "ops (platform)"
