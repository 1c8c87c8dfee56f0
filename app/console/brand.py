"""The look of the setup pages: the product's name, logo and colour, from the settings.

For any colour, text and links have a contrast of at least 4.5 (WCAG 2.2 AA, 1.4.3), in light and
in dark. So links have a shade of the colour, and the text on a button is black or white.
"""

from __future__ import annotations

from functools import cache

from flask import Response, url_for

from app.config import current_config

Rgb = tuple[int, int, int]

BLACK, WHITE = (0, 0, 0), (255, 255, 255)
MIN_CONTRAST = 4.5
# The page, the bar above it, and what a shade is mixed with until it can be read on both.
LIGHT = ((255, 255, 255), (247, 248, 250), BLACK)
DARK = ((18, 22, 29), (23, 28, 37), WHITE)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
STYLESHEET = """\
:root:not([data-theme=dark]), [data-theme=light] {{
{light}}}
@media (prefers-color-scheme: dark) {{
:root:not([data-theme]) {{
{dark}}}
}}
"""


def brand() -> dict[str, str]:
    """The name, and the addresses of the logo and the style sheet; empty if it is not set."""
    config = current_config()
    return {
        "name": config.setup_name or config.console_name,
        "logo_url": url_for("console.read_brand", name="logo") if config.setup_logo else "",
        "style_url": url_for("console.read_brand", name="setup.css") if config.setup_color else "",
    }


def brand_response(name: str) -> Response | None:
    """The file of this name; None for a name that is not known or not set."""
    config, response = current_config(), None
    if name == "logo" and config.setup_logo:
        content, content_type = config.setup_logo
        response = Response(content, content_type=content_type)
    elif name == "setup.css" and config.setup_color:
        response = Response(stylesheet(config.setup_color), mimetype="text/css")
    if response is not None:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "public, max-age=300"
    return response


@cache
def stylesheet(color: str) -> str:
    """The style sheet for a colour such as ``#3157c9``."""
    base = (int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16))
    light, dark = (_declarations(palette(base, *theme)) for theme in (LIGHT, DARK))
    return STYLESHEET.format(light=light, dark=dark)


def palette(base: Rgb, page: Rgb, bar: Rgb, toward: Rgb) -> dict[str, Rgb]:
    """The custom properties of a theme by their names."""
    for step in range(51):
        link = mixed(base, toward, step / 50)
        surface = mixed(page, link, 0.1)
        if min(contrast(link, each) for each in (page, bar, surface)) >= MIN_CONTRAST:
            break
    inverse = WHITE if contrast(WHITE, base) >= MIN_CONTRAST else BLACK
    return {
        "--pico-primary": link,
        "--pico-primary-hover": mixed(link, toward, 0.25),
        "--pico-primary-border": link,  # a button is seen where its colour is the page's
        "--pico-primary-hover-border": link,
        "--pico-primary-focus": surface,
        "--pico-primary-background": base,
        "--pico-primary-hover-background": mixed(base, BLACK if inverse == WHITE else WHITE, 0.15),
        "--pico-primary-inverse": inverse,
        "--accent-surface": surface,
    }


def contrast(one: Rgb, other: Rgb) -> float:
    """The contrast ratio of WCAG 2.2, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def mixed(one: Rgb, other: Rgb, share: float) -> Rgb:
    """One colour with a share of another."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _luminance(color: Rgb) -> float:
    parts = [part / 255 for part in color]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _declarations(properties: dict[str, Rgb]) -> str:
    return "".join(
        "  {}: #{:02x}{:02x}{:02x};\n".format(name, *color) for name, color in properties.items()
    )
