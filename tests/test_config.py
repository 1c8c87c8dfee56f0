"""The environment: read once, and every fault of it told in one sentence."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from sqlalchemy.engine import make_url

from app.auth.tokens import TokenVerifier
from app.config import SETTINGS, Config, ConfigError, load_config
from app.config_values import parse_rate

NEEDED = {
    "DATABASE_URL": "postgresql://app@db/controlplane",
    "REDIS_URL": "redis://cache",
    "JWT_ISSUER": "https://id.example.com/",
    "JWT_AUDIENCE": "controlplane",
    "JWT_JWKS_URL": "https://id.example.com/jwks",
}
EXAMPLE = "https://app.example.com"


def loaded(**settings: str) -> Config:
    return load_config({**NEEDED, **settings})


def refusal(**settings: str) -> str:
    with pytest.raises(ConfigError) as refused:
        loaded(**settings)
    return refused.value.message


def pem(key: Any) -> str:
    """The public half of a key."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, spki).decode()


class TestConfig:
    def test_has_defaults_for_what_is_unset_or_blank(self):
        assert loaded(DB_POOL_SIZE=" ", UNKNOWN="x") == loaded()
        assert loaded().db_pool_size == 4
        assert loaded().migration_database_url == loaded().database_url

    def test_lists_every_fault_at_once(self):
        with pytest.raises(ConfigError) as refused:
            load_config(
                {"REDIS_URL": "http://cache", "DB_POOL_SIZE": "many", "TRUSTED_PROXIES": "11"}
            )

        assert refused.value.message == (
            "The configuration is not usable: REDIS_URL must be a redis://, rediss:// or unix:// URL;"
            " DB_POOL_SIZE must be a number, not 'many'; TRUSTED_PROXIES must be between 0 and 10;"
            " DATABASE_URL is not set; JWT_ISSUER is not set;"
            " JWT_AUDIENCE is not set; exactly one of JWT_JWKS_URL and JWT_PUBLIC_KEY must be set."
        )

    def test_reads_urls_of_replicas_with_white_space(self):
        urls = "postgresql://app@db-2/x\n  postgres://app@db-3:5433/x "

        assert loaded(DATABASE_REPLICA_URLS=urls).database_replica_urls == (
            "postgresql+psycopg2://app@db-2/x",
            "postgresql+psycopg2://app@db-3:5433/x",
        )
        assert loaded().database_replica_urls == ()

    def test_reads_origins_with_commas_or_white_space(self):
        origins = ("https://app.example.com", "http://localhost:5173", "http://[::1]:8080")

        assert loaded(CORS_ORIGINS=", ".join(origins)).cors_origins == origins
        assert loaded().cors_origins == ()

    @pytest.mark.parametrize(
        ("name", "value", "fault"),
        [
            ("DATABASE_URL", "mysql://db/x", "must be a postgresql:// URL"),
            ("DATABASE_URL", "db", "must be a postgresql:// URL"),
            ("DATABASE_URL", "postgresql://db:port/x", "is no URL that can be read"),
            ("DATABASE_REPLICA_URLS", "postgresql://a/x b/x", "must be a postgresql:// URL"),
            ("REPLICA_MAX_LAG", "0", "must be between 0.5 and 300"),
            ("DATABASE_URL", "postgresql://one:1,two:port/x", "is no URL that can be read"),
            (
                "DATABASE_URL",
                "postgresql:///x?host=one,two&port=1,2,3",
                "is no URL that can be read",
            ),
            ("REDIS_URL", "redis://cache:port", "is no URL that can be read"),
            ("JWT_JWKS_URL", "id.example.com/jwks", "must be an http:// or https:// URL"),
            *(
                ("CORS_ORIGINS", origin, f"must be origins such as {EXAMPLE}, {origin!r} is none")
                for origin in (
                    "*",
                    "null",
                    "app.example.com",
                    "ftp://app.example.com",
                    "https://app.example.com/",
                    "https://App.example.com",
                    "https://*.example.com",
                    "https://user@app.example.com",
                    "https://app.example.com:443",
                    "http://localhost:80",
                )
            ),
            ("LOG_LEVEL", "loud", "must be one of DEBUG, INFO, WARNING, ERROR"),
            ("RATELIMIT_ENABLED", "perhaps", "must be 1 or 0"),
            ("RATELIMIT_DEFAULT", "often", "must be a rate such as 100/minute"),
            ("RATELIMIT_PLATFORM", "0/minute", "must be a rate such as 100/minute"),
            ("RATELIMIT_FAILED_AUTH", "1/second;9/minute", "must be a rate such as 100/minute"),
            ("DB_STATEMENT_TIMEOUT", "0", "must be between 1 and 600"),
            ("IDP_ROLE_MAP", "admin=admin owner=", "must be name=value pairs, 'owner=' is none"),
            ("JWT_ALGORITHMS", "RS256 HS256", "may name RS256, ES256 and EdDSA only"),
            ("JWT_ALGORITHMS", ",", "may name RS256, ES256 and EdDSA only"),
            ("JWT_SIGNING_KEY", "/nowhere/key.pem", "is neither PEM text nor a readable file"),
        ],
    )
    def test_refuses(self, name, value, fault):
        assert f"{name} {fault}" in refusal(**{name: value})

    def test_does_not_say_of_a_wrong_setting_that_it_is_not_set(self):
        assert "not set" not in refusal(DATABASE_URL="mysql://db/x")

    @pytest.mark.parametrize("name", [*NEEDED])
    def test_marks_what_it_cannot_do_without(self, name):
        without = {known: value for known, value in NEEDED.items() if known != name}

        with pytest.raises(ConfigError, match=name):
            load_config(without)

        assert SETTINGS[name].metadata["required"].startswith("required")

    @pytest.mark.parametrize("given", [{"JWT_PUBLIC_KEY": "-----BEGIN X"}, {"JWT_JWKS_URL": ""}])
    def test_takes_the_identity_providers_keys_from_one_place(self, given):
        assert "exactly one of JWT_JWKS_URL and JWT_PUBLIC_KEY" in refusal(**given)

    @pytest.mark.parametrize(
        ("name", "value", "meaning"),
        [
            ("DATABASE_URL", "postgres://a@db/x", "postgresql+psycopg2://a@db/x"),
            ("DATABASE_URL", "postgresql+psycopg2://a@db/x", "postgresql+psycopg2://a@db/x"),
            ("LOG_LEVEL", "debug", "DEBUG"),
            ("REDIS_URL", " unix:///run/redis.sock ", "unix:///run/redis.sock"),
            ("RATELIMIT_ENABLED", "Off", False),
            ("RATELIMIT_ENABLED", "yes", True),
            ("RATELIMIT_DEFAULT", "5/second", "5/second"),
            ("DB_STATEMENT_TIMEOUT", "2.5", 2.5),
            ("IDP_ROLE_MAP", "org:admin=admin,boss=owner", {"org:admin": "admin", "boss": "owner"}),
            ("JWT_ALGORITHMS", "ES256, EdDSA", ("ES256", "EdDSA")),
            ("JWT_SIGNING_KEY", "-----BEGIN X\\nY", "-----BEGIN X\nY"),
        ],
    )
    def test_understands(self, name, value, meaning):
        assert getattr(loaded(**{name: value}), name.lower()) == meaning

    @pytest.mark.parametrize(
        ("url", "listed"),
        [
            ("postgresql://a:p%40ss@one:5433,two/db", "host=one%2Ctwo&port=5433%2C"),
            ("postgres://a:p%40ss@one,two/db", "host=one%2Ctwo&port=%2C"),
            ("postgresql://a:p%40ss@[::1]:1,[::2]:2/db", "host=%3A%3A1%2C%3A%3A2&port=1%2C2"),
            ("postgresql://a:p%40ss@/db?host=one:1&host=two:2", "host=one%3A1&host=two%3A2"),
            ("postgresql://a:p%40ss@/db?host=one,two&port=1,2", "host=one%2Ctwo&port=1%2C2"),
        ],
    )
    def test_uses_the_one_of_several_hosts_that_accepts_writes(self, url, listed):
        given = loaded(DATABASE_URL=url)
        attributes = loaded(
            DATABASE_URL=f"{url}{'&' if '?' in url else '?'}target_session_attrs=any"
        )

        expected = f"postgresql+psycopg2://a:p%40ss@/db?{listed}&target_session_attrs=read-write"
        assert given.database_url == expected
        assert make_url(attributes.database_url).query["target_session_attrs"] == "any"

    def test_reads_a_key_from_a_file(self, tmp_path):
        path = tmp_path / "key.pem"
        path.write_text("-----BEGIN PRIVATE KEY-----\n")

        assert loaded(JWT_SIGNING_KEY=str(path)).jwt_signing_key == path.read_text()


class TestRate:
    @pytest.mark.parametrize(
        ("text", "rate"),
        [
            ("600/minute", (600, 60)),
            ("1/second", (1, 1)),
            (" 10 per Hour ", (10, 3600)),
            ("100 / 5 minutes", (100, 300)),
            ("7 per 2 days", (7, 172_800)),
            ("5/month", (5, 2_592_000)),
        ],
    )
    def test_is_read(self, text, rate):
        assert parse_rate(text) == rate

    @pytest.mark.parametrize(
        "text", ["", "5", "5/", "/minute", "-1/minute", "1.5/minute", "5/week"]
    )
    def test_of_another_form_is_refused(self, text):
        with pytest.raises(ValueError, match="must be a rate"):
            parse_rate(text)


class TestPinnedKey:
    @pytest.mark.parametrize(
        ("pem", "fault"),
        [
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "Could not deserialize"),
            (pem(rsa.generate_private_key(65537, 2048)), "RS256 keys are not accepted"),
            (pem(ec.generate_private_key(ec.SECP384R1())), "not a key for RS256, ES256 or EdDSA"),
        ],
    )
    def test_that_cannot_verify_an_accepted_token_is_refused_at_start(self, pem, fault):
        config = loaded(JWT_PUBLIC_KEY=pem, JWT_JWKS_URL="", JWT_ALGORITHMS="ES256")

        with pytest.raises(ConfigError, match=f"JWT_PUBLIC_KEY is not usable: .*{fault}"):
            TokenVerifier(config)
