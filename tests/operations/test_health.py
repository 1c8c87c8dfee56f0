"""/healthz and /readyz."""

from dataclasses import replace

import pytest

from app.operations import service

READY = {"database": "ok", "migrations": "ok", "redis": "ok"}


class TestReadiness:
    def test_is_told_for_each_part(self, api):
        answer = api.get("/readyz")

        assert answer.status_code == 200
        assert answer.get_json() == {"status": "ok", "checks": READY}

    def test_does_not_need_redis(self, app, api, monkeypatch):
        away = replace(app.extensions["config"], redis_url="redis://127.0.0.1:1")
        monkeypatch.setitem(app.extensions, "config", away)

        answer = api.get("/readyz")

        assert answer.status_code == 200
        assert answer.get_json() == {"status": "ok", "checks": {**READY, "redis": "degraded"}}

    @pytest.mark.parametrize(("newest", "status"), [("0001", 200), ("9999", 503)])
    def test_needs_the_migrations_of_this_release_at_least(self, api, monkeypatch, newest, status):
        monkeypatch.setattr(service, "newest_migration", lambda: newest)

        answer = api.get("/readyz")

        assert answer.status_code == status
        assert (answer.get_json()["checks"]["migrations"] == "ok") is (status == 200)
