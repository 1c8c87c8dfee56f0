"""Who is believed: the providers' own verdicts, rotation, several senders, hostile input."""

import base64
import gc
import json
import time
import weakref
from contextlib import suppress

import pytest
import standardwebhooks
import stripe
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inbox.signatures.presets import PRESETS
from app.inbox.signatures.proof import SignatureInvalid
from app.inbox.signatures.schemes import parse_schemes, verify
from app.inbox.signatures.sending import sign
from app.inbox.signatures.sns import Certificates, CertificateUnavailable
from tests.conformance.webhook_vectors import body, load_vectors, preset, scheme_text, verdict

NOW = 1_800_000_000
BODY = '{"type": "user.created", "data": {"id": "user_1", "name": "Æsir"}}'.encode()
TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"
_P256 = ec.generate_private_key(ec.SECP256R1())
_P256_PUBLIC = base64.b64encode(
    _P256.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
).decode()
_P256_PRIVATE = base64.b64encode(
    _P256.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
).decode()
_STANDARD = "whsec_" + base64.b64encode(b"k" * 32).decode()
SECRETS = {
    **dict.fromkeys(("standard_webhooks", "svix", "clerk", "stytch", "resend"), _STANDARD),
    "workos": "workos-secret", "stripe": "whsec_stripe", "github": "github-secret",
    "logto": "logto-secret", "sendgrid": _P256_PRIVATE, "mailgun": "mailgun-key",
    "postmark": "user:pass:word", "auth0": "token", "auth0_basic": "user:password",
    "auth0_header": "X-Hook-Key:value", "paddle": "pdl_ntfset", "chargebee": "user:pass:word",
    "lemonsqueezy": "lemon-secret", "polar": _STANDARD,
}  # fmt: skip
VALUES = {**SECRETS, "sendgrid": _P256_PUBLIC, "ses": TOPIC}
STANDARD_WEBHOOKS = {"standard-webhooks", "standard-webhooks-ed25519"}
PUBLISHED_KEY = (  # of svix-server's unit test, whose signature is a vector
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
)


def vectors(expected):
    return [vector for vector in load_vectors() if verdict(vector) == expected]


class Headers(dict):
    """Whether anybody keeps them can be found out."""


def check(text, headers, body, now=NOW, fetch=None):
    """Verify under the configuration ``text``; certificates come from ``fetch`` alone."""
    certificates = Certificates(fetch or refuse_to_fetch)
    return verify(parse_schemes(text, certificates=certificates), headers.items(), body, now)


def check_vector(vector, extra=""):
    """Verify a recorded request as its receiver is configured."""

    def fetch(url):
        if url not in vector.get("certificates", {}):
            raise SignatureInvalid("no such certificate")
        return vector["certificates"][url].encode()

    text = f"{extra} {scheme_text(vector)}"
    return check(text, vector["headers"], body(vector), vector["now"], fetch)


def refuse_to_fetch(url):
    raise AssertionError(f"nothing is to be fetched, and {url} was")


class TestVerdictsOfTheProvidersOwnPackages:
    """The verdicts themselves: ``tests/conformance/test_webhooks.py``."""

    def test_tells_the_sender_among_all_presets_at_once(self):
        others = " ".join(f"{name}:{value}" for name, value in VALUES.items())

        found = {vector["name"]: check_vector(vector, others).preset for vector in vectors("valid")}

        assert found == {vector["name"]: preset(vector) for vector in vectors("valid")}

    def test_tells_the_id_that_identifies_a_delivery(self):
        with_id = {"standard-webhooks", "standard-webhooks-ed25519", "aws-sns"}

        for vector in vectors("valid"):
            signed_id = vector.get("event_id") if vector["scheme"] in with_id else None
            assert check_vector(vector).proof.message_id == signed_id, vector["name"]


class TestEverySenderThatCanBeImitated:
    @pytest.mark.parametrize("name", SECRETS)
    def test_is_believed_when_it_signs(self, name):
        signed = sign(name, SECRETS[name], BODY, NOW)

        verified = check(f"{name}:{VALUES[name]}", signed.headers, signed.body)

        assert (verified.preset, verified.provider) == (name, PRESETS[name].provider)

    @pytest.mark.parametrize("name", [name for name in SECRETS if name != "sendgrid"])
    def test_is_believed_under_a_second_secret_during_rotation(self, name):
        signed = sign(name, SECRETS[name], BODY, NOW)
        other = _STANDARD.replace("a", "b") if "whsec" in VALUES[name] else f"x{VALUES[name]}"

        verified = check(f"{name}:{other} {name}:{VALUES[name]}", signed.headers, signed.body)

        assert verified.preset == name

    @pytest.mark.parametrize("name", [name for name in SECRETS if name != "mailgun"])
    def test_is_refused_when_one_header_is_doubled(self, name):
        signed = sign(name, SECRETS[name], BODY, NOW)
        doubled = [*signed.headers.items(), next(iter(signed.headers.items()))]

        with pytest.raises(SignatureInvalid):
            verify(parse_schemes(f"{name}:{VALUES[name]}"), doubled, signed.body, NOW)

    @pytest.mark.parametrize(
        "name", [name for name in SECRETS if PRESETS[name].options.get("tolerance")]
    )
    def test_is_refused_outside_the_tolerance_in_both_directions(self, name):
        text, tolerance = f"{name}:{VALUES[name]}", PRESETS[name].options["tolerance"]
        signed = sign(name, SECRETS[name], BODY, NOW)

        for edge in (NOW - tolerance, NOW + tolerance):
            assert check(text, signed.headers, signed.body, edge).preset == name
        for outside in (NOW - tolerance - 1, NOW + tolerance + 1):
            with pytest.raises(SignatureInvalid):
                check(text, signed.headers, signed.body, outside)

    def test_signs_standard_webhooks_as_the_vectors_are_signed(self):
        signed = []

        for vector in vectors("valid"):
            known = {"standard-webhooks-v1a/known-answer-svix-server": PUBLISHED_KEY}
            keys = vector.get("secrets") or [known.get(vector["name"], vector.get("secret"))]
            if keys == [None] or vector["scheme"] not in STANDARD_WEBHOOKS:
                continue
            sent = {name.lower().split("-")[1]: text for name, text in vector["headers"].items()}
            moment, message_id = int(sent["timestamp"]), sent["id"]
            made = {
                sign("standard_webhooks", key, body(vector), moment, message_id=message_id).headers[
                    "webhook-signature"
                ]
                for key in keys
            }
            assert made & set(sent["signature"].split(" ")), vector["name"]
            signed.append(vector["scheme"])

        assert set(signed) == STANDARD_WEBHOOKS

    def test_may_sign_with_ed25519(self):
        private = Ed25519PrivateKey.generate()
        public = base64.b64encode(private.public_key().public_bytes_raw()).decode()
        secret = "whsk_" + base64.b64encode(private.private_bytes_raw()).decode()
        signed = sign("standard_webhooks", secret, BODY, NOW, message_id="msg_1")

        verified = check(f"standard_webhooks:whpk_{public}", signed.headers, BODY)

        assert signed.headers["webhook-signature"].startswith("v1a,")
        assert verified.proof.message_id == "msg_1"

    def test_cannot_be_amazon(self):
        with pytest.raises(ValueError, match="ses"):
            sign("ses", TOPIC, BODY, NOW)


class TestProvidersOwnPackages:
    """They accept what we sign, so what we accept is what they sign."""

    def test_stripe_accepts_what_we_sign(self):
        raw = json.dumps({"id": "evt_1", "object": "event", "type": "customer.updated"}).encode()
        signed = sign("stripe", "whsec_stripe", raw, time.time())

        event = stripe.Webhook.construct_event(
            raw, signed.headers["Stripe-Signature"], "whsec_stripe"
        )

        assert event.id == "evt_1"

    @pytest.mark.parametrize(
        ("secret", "package_secret"),
        [(_STANDARD, _STANDARD), ("whsec_not-base64", b"whsec_not-base64")],
    )
    def test_standard_webhooks_accepts_what_we_sign_as_polar(self, secret, package_secret):
        raw = b'{"type": "subscription.updated"}'
        signed = sign("polar", secret, raw, time.time(), message_id="msg_1")

        found = standardwebhooks.Webhook(package_secret).verify(raw, signed.headers)

        assert found == json.loads(raw)


class TestPolar:
    """Only the age of a secret, which nobody tells us, decides which key it stands for."""

    @pytest.mark.parametrize("secret", [_STANDARD, "whsec_lcwEfgBqz0OJ14iMithb6jT15fYiCXSl", "own"])
    def test_is_believed_with_the_whole_secret_as_key(self, secret):
        key = base64.b64encode(secret.encode()).decode()
        signed = sign("standard_webhooks", key, BODY, NOW, message_id="msg_1")

        verified = check(f"polar:{secret}", signed.headers, BODY)

        assert (verified.provider, verified.proof.message_id) == ("polar", "msg_1")

    def test_is_believed_with_what_follows_the_prefix_in_base64(self):
        signed = sign("standard_webhooks", _STANDARD, BODY, NOW)

        assert check(f"polar:{_STANDARD}", signed.headers, BODY).provider == "polar"

    def test_never_has_an_empty_key(self):
        signed = sign("standard_webhooks", "", BODY, NOW)

        with pytest.raises(SignatureInvalid):
            check("polar:whsec_= polar:whsec_====", signed.headers, BODY)


class TestPaddle:
    def test_is_believed_by_any_of_its_signatures(self):
        right = sign("paddle", "key", BODY, NOW).headers["Paddle-Signature"]
        time_, _, signature = right.partition(";")

        for header in (
            f"{right};h1=00",
            f"{time_};h1=00;{signature}",
            f"h1=00;{signature};{time_}",
        ):
            assert check("paddle:key", {"Paddle-Signature": header}, BODY).provider == "paddle"

    @pytest.mark.parametrize("header", ["ts=1;h1=", ";;", "ts=1;ts=1;h1=00", "ts=;h1=00", "h1=00"])
    def test_is_refused_where_the_header_has_another_form(self, header):
        with pytest.raises(SignatureInvalid):
            check("paddle:key", {"Paddle-Signature": header}, BODY)


class TestWhatASignatureTells:
    def test_clerk_reads_its_own_headers_only(self):
        signed = sign("standard_webhooks", _STANDARD, BODY, NOW)

        with pytest.raises(SignatureInvalid):
            check(f"clerk:{_STANDARD}", signed.headers, BODY)

    def test_a_mailgun_token_is_to_be_used_once(self):
        signed = sign("mailgun", SECRETS["mailgun"], b'{"event-data": {}}', NOW)

        proof = check("mailgun:mailgun-key", signed.headers, signed.body).proof

        assert proof.replay_key == json.loads(signed.body)["signature"]["token"]

    @pytest.mark.parametrize("key", ["right", "wrong"])
    def test_nothing_keeps_the_request_that_was_looked_at(self, key):
        headers = Headers(sign("github", key, BODY, NOW).headers)
        request = weakref.ref(headers)
        gc.disable()
        try:
            with suppress(SignatureInvalid):
                check("github:other github:right github:another", headers, BODY)
            del headers
            assert request() is None
        finally:
            gc.enable()

    def test_a_secret_never_shows_in_a_representation(self):
        assert "github-secret" not in repr(parse_schemes("github:github-secret"))


class TestAmazonSns:
    def envelopes(self, kind):
        """Valid envelopes of one type, each with its configuration and certificates."""
        found = [v for v in vectors("valid") if v["scheme"] == "aws-sns"]
        return [v for v in found if json.loads(body(v))["Type"] == kind]

    def test_a_certificate_that_cannot_be_fetched_is_told_apart_and_not_asked_for_again(self):
        vector = self.envelopes("Notification")[0]
        headers, asked = Headers(vector["headers"]), []
        request = weakref.ref(headers)

        def fetch(url):
            asked.append(url)
            raise CertificateUnavailable("away")

        text = f"{scheme_text(vector)} mailgun:key"
        schemes = parse_schemes(text, certificates=Certificates(fetch))
        for _ in range(2):
            with pytest.raises(CertificateUnavailable):
                verify(schemes, headers.items(), body(vector), vector["now"])
        del headers
        gc.collect()

        assert len(asked) == 1
        assert request() is None  # nothing keeps it

    @pytest.mark.parametrize(
        "url",
        [
            "http://sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com.attacker.example/a.pem",
            "https://sns.eu-west-1.amazonaws.com@attacker.example/a.pem",
            "https://sns.eu-west-1.amazonaws.com:444/a.pem",
            "https://attacker.example/sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com/?x=/a.pem",
            "https://sns.eu-west-1.amazonaws.com/a#.pem",
            "https://sns.eu-west-1.amazonaws.com\\@attacker.example/a.pem",
            "https://s3.amazonaws.com/a.pem",
            "https://[/a.pem",
        ],
    )
    def test_never_fetches_from_elsewhere(self, url):
        vector = self.envelopes("Notification")[0]
        envelope = json.loads(body(vector)) | {"SigningCertURL": url}

        with pytest.raises(SignatureInvalid):
            check(scheme_text(vector), {}, json.dumps(envelope).encode(), vector["now"])

    def test_never_fetches_for_another_topic(self):
        vector = self.envelopes("Notification")[0]

        with pytest.raises(SignatureInvalid):
            check(f"ses:{TOPIC}", {}, body(vector), vector["now"])


class TestTheConfiguration:
    def test_reads_every_preset(self):
        text = "\n".join(f"{name}:{value}" for name, value in VALUES.items())

        assert [scheme.preset for scheme in parse_schemes(text)] == list(VALUES)
        assert set(VALUES) == set(PRESETS)

    def test_takes_another_tolerance(self):
        signed = sign("mailgun", "key", b"{}", NOW - 5000)

        assert check("mailgun:key?tolerance=6000", {}, signed.body).preset == "mailgun"
        with pytest.raises(SignatureInvalid):
            check("mailgun:key", {}, signed.body)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("whsec_abc", "expected preset:value"),
            ("braintree:secret", "expected preset:value"),
            ("workos:", "workos: the value is not a secret"),
            ("standard_webhooks:whsec_", "standard_webhooks: the value is not a secret"),
            ("svix:whsec_?!", "svix: the value is not a secret"),
            ("svix:whsk_a2V5", "svix: the value is not a secret"),
            ("svix:whpk_a2V5", "svix: the value is not a secret"),
            ("sendgrid:MFkw", "sendgrid: the value is not a P-256 public key"),
            ("polar:whsec_", "polar: the value is not a secret"),
            ("chargebee:password", "chargebee: the value is not user:password"),
            ("ses:my-topic", "ses: the value is not the ARN of an SNS topic"),
            ("postmark:password", "postmark: the value is not user:password"),
            ("auth0_header:value", "auth0_header: the value is not header:value"),
            ("github:secret?tolerance=5", "github: its requests carry no time"),
        ],
    )
    def test_names_what_is_wrong(self, text, said):
        with pytest.raises(ValueError, match=said):
            parse_schemes(text)

    @pytest.mark.parametrize(
        "pair",
        ["s3cr3t", "braintree:s3cr3t", "svix:s3cr3t*", "sendgrid:s3cr3t*", "postmark:s3cr3t"],
    )
    def test_never_quotes_a_secret(self, pair):
        with pytest.raises(ValueError, match=r"preset:value|the value is not") as refused:
            parse_schemes(pair)

        assert "s3cr3t" not in str(refused.value)


ANYTHING = st.text(st.characters(exclude_categories=[]))
HEADER_NAMES = sorted(
    {name.lower() for vector in load_vectors() for name in vector["headers"]} | {"x-hook-key"}
)
MEMBERS = """
    Type MessageId TopicArn Message Timestamp SignatureVersion Signature SigningCertURL Token
    SubscribeURL Subject signature timestamp token
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | ANYTHING,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS.split()), inner)
    ),
    max_leaves=8,
)
SNS_LIKE = st.fixed_dictionaries(
    {
        "TopicArn": st.just(TOPIC),
        "Type": st.sampled_from(["Notification", "SubscriptionConfirmation", "x"]) | JSON,
        "SignatureVersion": st.sampled_from(["1", "2", "3"]) | JSON,
        "Timestamp": st.just("2027-01-15T08:00:00Z") | ANYTHING | JSON,
        "SigningCertURL": st.just("https://sns.eu-west-1.amazonaws.com/a.pem") | ANYTHING | JSON,
        "Signature": st.just("c2ln") | ANYTHING | JSON,
    },
    optional=dict.fromkeys(("Message", "MessageId", "Subject"), ANYTHING | JSON),
)
_MAILGUN = {"timestamp": st.just(str(NOW)) | JSON, "token": ANYTHING | JSON}
MAILGUN_LIKE = st.fixed_dictionaries(
    {"signature": st.fixed_dictionaries({**_MAILGUN, "signature": ANYTHING | JSON})}
)
TIMESTAMPS = st.sampled_from([str(NOW), f"t={NOW},v1=00", f"t={NOW}000, v1=ff", "Basic ", "v1,"])
SCHEMES = [f"{name}:{value}" for name, value in VALUES.items()]


class TestHostileInput:
    @settings(max_examples=200, deadline=None)
    @given(
        headers=st.lists(st.tuples(st.sampled_from(HEADER_NAMES), TIMESTAMPS | ANYTHING)),
        content=st.binary()
        | (JSON | SNS_LIKE | MAILGUN_LIKE).map(lambda j: json.dumps(j).encode()),
        pem=st.binary(),
    )
    def test_is_refused_and_raises_nothing_else(self, headers, content, pem):
        schemes = parse_schemes(" ".join(SCHEMES), certificates=Certificates(lambda url: pem))

        with pytest.raises(SignatureInvalid):
            verify(schemes, headers, content, NOW)

    @pytest.mark.parametrize(
        "content",
        [b"[" * 100_000, b"1" * 5000, b'{"signature":' * 50_000, b"\xff\xfe", b"", b"null"],
    )
    def test_is_refused_where_it_breaks_parsers(self, content):
        with pytest.raises(SignatureInvalid):
            verify(parse_schemes(" ".join(SCHEMES)), [], content, time.time())
