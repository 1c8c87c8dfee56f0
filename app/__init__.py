"""The service. :func:`create_app` is the only place that knows every domain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from app.auth.key_use import record_refused_use
from app.auth.oidc import IdentityProvider
from app.auth.tokens import TokenVerifier
from app.config import load_config
from app.console.routes import open_console
from app.core.db.replicas.reading import open_databases
from app.core.http import hooks
from app.core.http.application import Application
from app.core.http.cors import allow_origins
from app.core.http.rate_limit import EXTENSION, RateLimits
from app.core.http.routing import configure_routing
from app.core.observability import logs, telemetry
from app.core.openapi.api import Api
from app.core.outgoing import Outgoing
from app.domains.joining import admit_signed_in
from app.events.catalogue import describe_webhooks
from app.extensions import db
from app.history import past
from app.operations.routes import open_documentation

DOMAINS = (
    "tenants",
    "users",
    "memberships",
    "roles",
    "invitations",
    "subscriptions",
    "plans",
    "flags",
    "credits",
    "usage",
    "custom_fields",
    "emails",
    "inbox",
    "billing",
    "imports",
    "api_keys",
    "connections",
    "sso_connections",
    "scim",
    "setup_links",
    "audit",
    "search",
    "privacy",
    "domains",
    "history",
    "rewinds",
    "identity_sync",
    "access",
    "events",
    "webhooks.endpoints",
    "webhooks.deliveries",
    "log_streams",
    "operations",
    "streams",
)


def create_app(
    overrides: Mapping[str, str] | None = None,
    *,
    with_commands: bool = True,
    quiet: bool = False,
    register: Callable[[Flask], None] | None = None,
) -> Flask:
    """The WSGI application.

    Settings come from the environment. ``overrides`` (same names, text values) take precedence.
    Without ``DATABASE_URL`` the application uses the private PostgreSQL and Redis of ``flask dev``.
    A web process uses ``with_commands=False``: it needs a sixth less memory without the commands'
    imports, such as Alembic. ``quiet`` logs errors only, whatever ``LOG_LEVEL`` is. ``register`` adds
    other endpoints than those of all domains.

    Raises :class:`app.config.ConfigError`, which lists all errors of the configuration.
    """
    environ = {**os.environ, **(overrides or {})}
    is_private = not environ.get("DATABASE_URL")
    if is_private:
        from app.dev.environment import development_environment

        environ = development_environment(environ)
    config = load_config(environ)
    logs.configure("ERROR" if quiet else config.log_level)
    app = Application(__name__, static_folder=None)
    configure_routing(app)
    app.extensions["config"] = config
    app.extensions["token_verifier"] = TokenVerifier(config)
    app.extensions["identity_provider"] = IdentityProvider(config)
    app.extensions["admit_signed_in"] = admit_signed_in
    app.extensions["enter_past"] = past.enter
    app.extensions["guarded_outgoing"] = Outgoing(
        only_public=not config.webhook_allow_private, proxy=config.webhook_proxy
    )
    app.config["PUBLIC_URL"] = config.public_url
    open_databases(app, config)
    import_each("jobs")  # registers them
    app.extensions["health"] = import_each("health")
    (register or _register_domains)(app)
    if with_commands:
        _register_commands(app)
    telemetry.start(app, config)
    app.extensions[EXTENSION] = RateLimits(config)
    app.before_request(hooks.begin)
    app.after_request(hooks.finish)
    allow_origins(app, config.cors_origins)
    app.after_request(record_refused_use)
    if hops := config.trusted_proxies:
        # A client beyond the counted proxies can put anything in these headers.
        proxied = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)
        app.wsgi_app = proxied  # type: ignore[method-assign]
    if is_private:
        from app.dev.engines.sharing import run_engines_for

        run_engines_for(app)
    return app


def import_each(name: str) -> list[ModuleType]:
    """The module ``name``, such as ``routes``, of each domain with such a module."""
    paths = [f"{__name__}.{domain}.{name}" for domain in DOMAINS]
    return [import_module(path) for path in paths if find_spec(path)]


def _register_domains(app: Flask) -> None:
    api = app.extensions["api"] = Api(describe_webhooks)
    api.init_app(app)
    for routes in import_each("routes"):
        for blueprint in routes.BLUEPRINTS:
            api.register_blueprint(blueprint)
        for protocol in getattr(routes, "PROTOCOLS", ()):
            app.register_blueprint(protocol)
    open_documentation(app)
    open_console(app)


def _register_commands(app: Flask) -> None:
    from flask_migrate import Migrate

    from app.cli import COMMANDS
    from app.cli.generated import Commands
    from app.dev.commands import COMMANDS as DEVELOPMENT_COMMANDS
    from app.dev.engines.instance import Instance
    from app.dev.processes import address, last_port

    instance = Instance.at(app.extensions["config"].instance_dir)
    app.extensions["local_address"] = lambda: address(last_port(instance))
    Migrate(app, db, directory="migrations", compare_type=True)
    del app.cli.commands["openapi"]  # flask-smorest's: it knows only a part of /openapi.json
    app.cli = Commands(app.cli.name, app.cli.commands)
    for command in (*COMMANDS, *DEVELOPMENT_COMMANDS):
        command.context_settings.setdefault("help_option_names", ["-h", "--help"])
        app.cli.add_command(command)
