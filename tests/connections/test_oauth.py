"""OAuth client credentials at /scim/oauth/token."""

import base64
import json
import time
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from app.auth.keys import digest_of
from app.connections import service
from app.connections.models import ScimAccessToken, ScimConnection
from app.connections.oauth import ASSERTION_TYPE, PATH
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from tests.database import execute, platform_transaction, row
from tests.scim.directory import BASE, Directory

ACTOR = Actor("cli:test")
AUDIENCE = f"http://localhost{PATH}"


def change(connection, **values):
    """Change columns of a connection, as the model's type stores them."""
    with platform_transaction():
        row_now = queries.lock_row(ScimConnection, connection.id)
        return queries.update_row(ScimConnection, row_now, values)[0]


def ask(app, headers=None, **form):
    values = {"grant_type": "client_credentials", **form}
    return app.test_client().post(PATH, data=values, headers=headers or {})


def of_secret(app, connection, secret, **form):
    return ask(app, client_id=str(connection.id), client_secret=secret, **form)


def refusal(answer, code):
    assert answer.content_type == "application/json"
    body = answer.get_json()
    assert body.keys() == {"error", "error_description"}
    assert body["error"] == code
    return body["error_description"]


class TestSecret:
    def test_gives_an_access_token_of_an_hour(self, app, connection):
        answer = of_secret(app, *connection)

        body = answer.get_json()
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-store"
        assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
        assert Directory(app, body["access_token"]).get("/Users").status_code == 200

    def test_can_be_in_the_header(self, app, connection):
        credential = base64.b64encode(f"{connection[0].id}:{connection[1]}".encode()).decode()

        answer = ask(app, {"Authorization": f"Basic {credential}"})

        assert answer.status_code == 200

    def test_two_are_valid_during_a_rotation(self, app, connection):
        later = utcnow() + timedelta(hours=1)
        change(connection[0], old_digest=digest_of("old"), old_expires_at=later)

        assert of_secret(app, connection[0], "old").status_code == 200
        assert of_secret(app, *connection).status_code == 200

        change(connection[0], old_expires_at=utcnow())
        assert of_secret(app, connection[0], "old").status_code == 401

    def test_an_access_token_is_no_secret(self, app, connection):
        token = of_secret(app, *connection).get_json()["access_token"]

        assert of_secret(app, connection[0], token).status_code == 401

    @pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic /w==", "Bearer x", "x"])
    def test_a_bad_header_is_refused(self, app, header):
        answer = ask(app, {"Authorization": header})

        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
        refusal(answer, "invalid_client")

    @pytest.mark.parametrize("name", ["client_id", "client_secret"])
    @pytest.mark.parametrize("value", ["", "x", "\0", "é" * 5000])
    def test_a_wrong_value_is_refused(self, app, connection, name, value):
        form = {"client_id": str(connection[0].id), "client_secret": connection[1], name: value}

        answer = ask(app, **form)

        refusal(answer, "invalid_request" if value == "\0" else "invalid_client")


class TestAccessTokens:
    @pytest.fixture
    def token(self, app, connection):
        return of_secret(app, *connection).get_json()["access_token"]

    def test_are_stored_as_digests_until_the_grant_after_their_end(self, app, connection, token):
        stored = row(ScimAccessToken).digest
        execute("UPDATE scim_access_tokens SET expires_at = now()")
        ended = Directory(app, token).get("/Users").status_code

        of_secret(app, *connection)

        assert (stored, ended) == (digest_of(token), 401)
        assert row(ScimAccessToken).digest != stored

    def test_a_disabled_connection_has_none(self, app, connection, token):
        change(connection[0], status="disabled")

        answer = Directory(app, token).get("/Users")
        assert answer.status_code == 403
        assert answer.get_json()["detail"] == "This SCIM connection is disabled."
        refusal(of_secret(app, *connection), "invalid_client")

    @pytest.mark.parametrize(("hours", "status"), [(0, 401), (1, 200)])
    def test_a_rotation_ends_them_unless_secrets_overlap(
        self, app, connection, owner, token, hours, status
    ):
        with platform_transaction():
            service.rotate(connection[0].id, overlap=timedelta(hours=hours), actor=ACTOR)

        assert Directory(app, token).get("/Users").status_code == status


class TestErrors:
    @pytest.fixture
    def limited_app(self, with_limits):
        return with_limits(RATELIMIT_FAILED_AUTH="2/month")

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ({"data": {"grant_type": "password"}}, "unsupported_grant_type"),
            ({"data": {"grant_type": ["a", "b"]}}, "invalid_request"),
            ({"json": {"grant_type": "client_credentials"}}, "invalid_request"),
        ],
        ids=["another grant type", "a parameter twice", "no form"],
    )
    def test_of_a_body_are_400(self, app, body, error):
        answer = app.test_client().post(PATH, **body)

        assert answer.status_code == 400
        refusal(answer, error)

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
    def test_another_method_is_405_with_oauths_body(self, app, method):
        answer = app.test_client().open(PATH, method=method)

        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        refusal(answer, "invalid_request")

    def test_a_large_body_has_oauths_body(self, app):
        answer = ask(app, client_secret="x" * 2_000_000)

        assert answer.status_code == 413
        refusal(answer, "invalid_request")

    def test_failures_are_limited(self, limited_app):
        answers = [ask(limited_app, client_id="x", client_secret="y") for _ in range(4)]

        assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
        refusal(answers[-1], "temporarily_unavailable")
        assert int(answers[-1].headers["Retry-After"]) > 0


KEYS = {
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def as_jwk(algorithm, **further):
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(KEYS[algorithm].public_key())
    return {**json.loads(made), **further}


class TestPrivateKey:
    @pytest.fixture
    def client(self, connection):
        keys = [as_jwk(name, kid=name) for name in KEYS]
        return change(connection[0], public_keys=keys)

    def assertion(self, client, algorithm="EdDSA", *, key=None, headers=None, **claims):
        values = {
            "iss": str(client.id),
            "sub": str(client.id),
            "aud": AUDIENCE,
            "exp": int(time.time()) + 300,
            "jti": str(time.monotonic_ns()),
        } | claims
        return jwt.encode(
            {name: value for name, value in values.items() if value is not None},
            key or KEYS[algorithm],
            algorithm,
            headers=headers,
        )

    def send(self, app, assertion, **form):
        given = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
        return ask(app, **given | form)

    @pytest.mark.parametrize("algorithm", KEYS)
    @pytest.mark.parametrize("named", [True, False])
    def test_gives_an_access_token(self, app, client, algorithm, named):
        headers = {"kid": algorithm} if named else None

        answer = self.send(app, self.assertion(client, algorithm, headers=headers))

        assert answer.status_code == 200, answer.text
        directory = Directory(app, answer.get_json()["access_token"])
        assert directory.get("/Users").status_code == 200

    @pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("evil.example", 401)])
    def test_the_audience_does_not_follow_the_host_header(self, app, client, host, status):
        assertion = self.assertion(client, aud=f"http://{host}{PATH}")
        form = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}

        assert ask(app, {"Host": "evil.example"}, **form).status_code == status

    def test_an_assertion_counts_once(self, app, client):
        assertion = self.assertion(client)

        answers = [self.send(app, assertion) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [200, 401]
        assert "used before" in refusal(answers[1], "invalid_client")

    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "https://elsewhere.example"},
            {"aud": None},
            {"iss": "somebody"},
            {"iss": None},
            {"sub": "somebody"},
            {"sub": None},
            {"exp": 1},
            {"exp": None},
            {"exp": int(time.time()) + 36_000},
            {"exp": "x"},
            {"exp": str(int(time.time()) + 36_000)},
            {"exp": 10**30},
            {"nbf": int(time.time()) + 3600},
        ],
    )
    def test_wrong_claims_are_refused(self, app, client, claims):
        answer = self.send(app, self.assertion(client, **claims))

        assert answer.status_code == 401
        refusal(answer, "invalid_client")

    @pytest.mark.parametrize(
        ("algorithm", "key"),
        [("EdDSA", ed25519.Ed25519PrivateKey.generate()), ("HS256", as_jwk("EdDSA")["x"] * 2)],
        ids=["another key", "symmetric"],
    )
    def test_another_signature_is_refused(self, app, client, algorithm, key):
        refusal(self.send(app, self.assertion(client, algorithm, key=key)), "invalid_client")

    @pytest.mark.parametrize("assertion", ["", "a", "a.b.c", "e30.e30.", "\u00e9.b.c"])
    def test_no_assertion_is_refused(self, app, assertion):
        refusal(self.send(app, assertion), "invalid_client")

    def test_another_assertion_type_is_refused(self, app, client):
        answer = self.send(app, self.assertion(client), client_assertion_type="saml")

        refusal(answer, "invalid_request")

    def test_other_keys_end_the_access_tokens(self, app, client, api, owner):
        token = self.send(app, self.assertion(client)).get_json()["access_token"]

        changed = api.patch(
            f"/v1/scim-connections/{client.id}", token=owner[2], json={"public_keys": []}
        )

        assert changed.status_code == 200, changed.text
        assert Directory(app, token).get("/Users").status_code == 401

    def test_only_public_keys_are_stored(self, app, client, api, owner):
        private = json.loads(jwt.get_algorithm_by_name("EdDSA").to_jwk(KEYS["EdDSA"]))
        small = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()
        weak = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(small))

        path = f"/v1/scim-connections/{client.id}"
        made = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(KEYS["RS256"].public_key()))
        number = int.from_bytes(base64.urlsafe_b64decode(made["n"] + "==")) - 1
        even = made | {"n": base64.urlsafe_b64encode(number.to_bytes(256)).decode().rstrip("=")}
        for key in (private, weak, even, {}, {"kty": "oct", "k": "eA"}, {"kty": "RSA", "n": 1}):
            answer = api.patch(path, token=owner[2], json={"public_keys": [key]})

            assert answer.status_code == 422, answer.text
            assert private["d"] not in answer.text


def test_the_path_below_the_base_is_the_protocols(app, connection):
    assert Directory(app, connection[1]).get("/oauth/token").status_code == 404
    assert BASE.startswith("/scim/")
