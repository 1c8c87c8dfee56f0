"""Write the pages of docs/reference."""

from __future__ import annotations

from pathlib import Path

from app import create_app
from app.dev.reference.pages import FOLDER, render_all

# The pages depend on no setting, and nothing is connected to.
SETTINGS = {
    "DATABASE_URL": "postgresql://127.0.0.1/controlplane",
    "REDIS_URL": "redis://127.0.0.1",
    "JWT_ISSUER": "https://id.example.com/",
    "JWT_AUDIENCE": "controlplane",
    "JWT_JWKS_URL": "https://id.example.com/jwks.json",
    "JWT_PUBLIC_KEY": "",
}

if __name__ == "__main__":
    for name, text in render_all(create_app(SETTINGS, quiet=True)).items():
        Path(FOLDER, name).write_text(text, encoding="utf-8")
