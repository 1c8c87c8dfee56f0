"""Random lives of subscriptions at each simulated provider."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qsl

from hypothesis import strategies as st

from app.billing.providers import chargebee, lemonsqueezy, paddle, polar, stripe
from app.billing.providers.provider import BillingProvider
from app.inbox.providers.payloads import Document
from tests.billing.simulated.base import Line, Simulated, Status, Subscription
from tests.billing.simulated.chargebee import Chargebee
from tests.billing.simulated.lemonsqueezy import LemonSqueezy
from tests.billing.simulated.paddle import Paddle
from tests.billing.simulated.polar import Polar
from tests.billing.simulated.stripe import Stripe

PAIRS: dict[str, tuple[type[Simulated], BillingProvider]] = {
    "stripe": (Stripe, stripe.PROVIDER),
    "paddle": (Paddle, paddle.PROVIDER),
    "polar": (Polar, polar.PROVIDER),
    "chargebee": (Chargebee, chargebee.PROVIDER),
    "lemonsqueezy": (LemonSqueezy, lemonsqueezy.PROVIDER),
}
"""A provider, and how we read it."""


def draw_lines(data: st.DataObject, account: Simulated) -> list[Line]:
    quantities = st.integers(0, 50) | (st.none() if account.has_metered_prices else st.just(1))
    number = data.draw(st.sampled_from(range(1, account.most_lines + 1)))
    return [Line(f"p{place}", data.draw(quantities), 100 * place) for place in range(number)]


def live(
    data: st.DataObject, account: Simulated, *, tenant: str = "acme"
) -> Iterator[Subscription]:
    """A new subscription, and the same after each of some random changes."""
    starts = [status for status in (Status.INCOMPLETE, Status.ACTIVE) if status in account.statuses]
    subscription = account.create(
        *draw_lines(data, account),
        tenant=tenant,
        trial=data.draw(st.none() | st.just(timedelta(days=14))),
        status=data.draw(st.sampled_from(starts)),
    )
    yield subscription
    for _ in range(data.draw(st.integers(0, 8))):
        subscription.customer.declines = data.draw(st.booleans())
        changes = [*account.possible(subscription), "advance", "change"]
        match data.draw(st.sampled_from(changes)):
            case "advance":
                account.advance(timedelta(days=data.draw(st.sampled_from([0, 1, 15, 40]))))
            case "change" if not subscription.has_ended:
                account.change(subscription, *draw_lines(data, account))
            case "change":
                pass
            case change:
                account.apply(change, subscription)
        yield subscription


def whole(account: Simulated, provider: BillingProvider, id_: str) -> Document:
    """The subscription as the API answers it, with what more has to be read."""
    found = provider.subscription_in(get(account, provider.subscription_path(id_)))
    while path := provider.more_path(found):
        found = provider.with_more(found, get(account, path))
    return found


def get(account: Simulated, path: str) -> Document:
    """The answer of the API to a path."""
    url, _, query = path.partition("?")
    return Document(account.answer(account.api_path + url, dict(parse_qsl(query))))
