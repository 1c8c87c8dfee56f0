"""The WSGI entry point: ``gunicorn wsgi:app``; ``flask`` commands find the app here too."""

from app import create_app

app = create_app()
