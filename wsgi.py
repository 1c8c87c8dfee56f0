"""The WSGI entry point: ``gunicorn wsgi:app``; ``flask`` commands find the app here too."""

from werkzeug.middleware.proxy_fix import ProxyFix

from app import create_app

app = create_app()

if hops := app.extensions["config"].trusted_proxies:
    # Whoever is further away than the proxies counted here can put anything in these headers.
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops)  # type: ignore[method-assign]
