"""The look of the setup pages: contrast for any colour, and logos that can do nothing."""

import gzip
from itertools import product
from random import Random

import pytest

from app import create_app
from app.config import ConfigError
from app.config_logo import MAX_LOGO, parse_logo
from app.console.brand import DARK, LIGHT, contrast, palette, stylesheet
from tests.console.conftest import Browser
from tests.console.test_setup import HOME, application, create_link, open_link

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
START = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
DRAWING = f"""<?xml version="1.0" encoding="UTF-8"?>
{START}<!-- made by hand --><style>path {{ fill: url(#a); stroke: #123456 }}</style>
<defs><linearGradient id="a"><stop offset="0" stop-color="red"/></linearGradient></defs>
<use href="#b"/><use xlink:href="#b"/><path id="b" style="fill:url('#a')" d="M0 0h9v9z"/></svg>"""
REFUSED = [
    "<script>alert(1)</script>",
    "<SCRIPT/>",
    '<x:script xmlns:x="http://www.w3.org/2000/svg"/>',
    '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>',
    '<img xmlns="http://www.w3.org/1999/xhtml"/>',
    '<path onload="alert(1)"/>',
    '<path ONCLICK="x"/>',
    "<foreignObject/>",
    '<a><set attributeName="href" to="javascript:alert(1)"/></a>',
    '<animate attributeName="href" values="javascript:alert(1)"/>',
    '<image href="https://evil.example/x.png"/>',
    '<use xlink:href="//evil.example/x.svg#a"/>',
    '<a href="javascript:alert(1)"><path/></a>',
    '<a href=" JavaScript:alert(1)"><path/></a>',
    '<image href="data:image/svg+xml;base64,PHN2Zz4="/>',
    '<path style="fill:url(https://evil.example)"/>',
    "<path fill=\"url( 'https://evil.example')\"/>",
    '<path style="fill:\\75rl(https://evil.example)"/>',
    '<path fill="\\75rl(https://evil.example)"/>',
    "<style>@im<g>x</g>port 'https://evil.example/x.css';</style>",
    "<style>@im<!-- -->port 'https://evil.example/x.css';</style>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<style><![CDATA[@import 'https://evil.example/x.css';]]></style>",
    "<style>@\\69mport 'https://evil.example/x.css';</style>",
    '<g xml:base="https://evil.example/"><use href="#a"/></g>',
    '<?xml-stylesheet href="https://evil.example/x.css"?>',
]


class TestColor:
    def test_any_colour_can_be_read(self):
        """WCAG 2.2: 4.5 for text, on each surface that it stands on."""
        chance = Random(20)
        edges = list(product((0, 127, 128, 255), repeat=3))
        anywhere = [tuple(chance.randrange(256) for _ in range(3)) for _ in range(1000)]

        for base, (page, bar, toward) in product([*edges, *anywhere], (LIGHT, DARK)):
            found = palette(base, page, bar, toward)
            surface = found["--accent-surface"]
            for link in (found["--pico-primary"], found["--pico-primary-hover"]):
                for behind in (page, bar, surface):
                    assert contrast(link, behind) >= 4.5, (base, link, behind)
            for button in ("--pico-primary-background", "--pico-primary-hover-background"):
                assert contrast(found["--pico-primary-inverse"], found[button]) >= 4.5, base
            assert contrast(found["--pico-primary-border"], page) >= 4.5

    def test_the_ratio_is_that_of_wcag(self):
        assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
        assert contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)

    def test_a_colour_that_can_be_read_is_kept(self):
        assert "--pico-primary: #1a4fb0" in stylesheet("#1a4fb0").partition("@media")[0]
        assert "--pico-primary-background: #1a4fb0" in stylesheet("#1a4fb0")


class TestLogo:
    def write(self, tmp_path, content):
        path = tmp_path / "logo"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def test_a_drawing_and_a_png_are_accepted(self, tmp_path):
        assert parse_logo(self.write(tmp_path, DRAWING)).content_type.startswith("image/svg+xml")
        assert parse_logo(self.write(tmp_path, PNG)) == (PNG, "image/png")

    @pytest.mark.parametrize("text", REFUSED)
    def test_a_drawing_that_does_something_is_refused(self, tmp_path, text):
        with pytest.raises(ValueError, match="; remove it from the file"):
            parse_logo(self.write(tmp_path, f"{START}{text}</svg>"))

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            ('<!DOCTYPE svg [<!ENTITY a "b">]>' + DRAWING.partition("?>")[2].strip(), "DOCTYPE"),
            (f'<!DOCTYPE svg SYSTEM "https://evil.example/x.dtd">{START}</svg>', "DOCTYPE"),
            ("<html/>", "not an SVG"),
            ('<svg xmlns="http://example.com/"/>', "not an SVG"),
            (f"{START}<path>", "neither a PNG nor a well-formed SVG"),
            ("", "neither a PNG nor"),
            (b"\xff\xd8\xff\xe0 JFIF", "neither a PNG nor"),
            (DRAWING.encode("utf-16"), "neither a PNG nor"),
            (PNG + b"\0" * MAX_LOGO, "at most 64 KiB"),
            (PNG[:16] + b"\0\0\xff\xff" + PNG[20:], "at most 4096 pixels wide"),
            (PNG[:20] + b"\x80\0\0\0" + PNG[24:], "at most 4096 pixels wide"),
            (gzip.compress(DRAWING.encode()), "neither a PNG nor"),
            (b"\xff\xfe" + DRAWING.encode("utf-16-le"), "neither a PNG nor"),
        ],
    )
    def test_what_is_neither_is_refused(self, tmp_path, content, what):
        with pytest.raises(ValueError, match=what):
            parse_logo(self.write(tmp_path, content))

    def test_a_missing_file_is_refused_at_the_start(self, environment, tmp_path):
        settings = {"SETUP_LOGO": str(tmp_path / "none"), "SETUP_COLOR": "blue"}

        with pytest.raises(ConfigError) as refused:
            create_app({**environment, **settings})

        assert "SETUP_LOGO is not a readable file (No such file" in refused.value.message
        assert "SETUP_COLOR must be a colour such as #3157c9" in refused.value.message


class TestPages:
    @pytest.fixture
    def branded(self, environment, tmp_path):
        logo = tmp_path / "logo.svg"
        logo.write_text(DRAWING)
        look = {"SETUP_NAME": "Acme & Co", "SETUP_LOGO": str(logo), "SETUP_COLOR": "#ffee00"}
        with application(environment, **look) as made:
            yield made

    def test_have_the_name_logo_and_colour(self, branded, tenant):
        browser, _ = open_link(branded, create_link(tenant))
        page = browser.get(HOME).text
        opening = Browser(branded).get(f"{HOME}/open?token=x").text

        for text in (page, opening):
            assert "Acme &amp; Co" in text
            assert 'alt="Acme &amp; Co"' in text
            assert text.count('="/console/brand/') == 2
        addresses = [part.partition('"')[0] for part in page.split('="')]
        logo, style = (
            Browser(branded).get(next(one for one in addresses if one.endswith(name)))
            for name in ("/logo", "/setup.css")
        )
        assert logo.text == DRAWING
        assert logo.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "sandbox" in logo.headers["Content-Security-Policy"]
        assert logo.headers["X-Content-Type-Options"] == "nosniff"
        assert style.mimetype == "text/css"
        assert "--pico-primary-inverse: #000000" in style.text
        assert style.headers["Cache-Control"] == "public, max-age=300"

    def test_have_the_consoles_look_without_settings(self, app, tenant):
        browser, _ = open_link(app, create_link(tenant))

        assert "/console/brand/" not in browser.get(HOME).text
        assert "Control plane" in browser.get(HOME).text
        assert browser.get("/console/brand/logo").status_code == 404
        assert browser.get("/console/brand/setup.css").status_code == 404
