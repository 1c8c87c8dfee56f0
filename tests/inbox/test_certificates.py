"""Fetching a signing certificate from a real TLS server, and from none."""

import datetime
import http.server
import socket
import ssl
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from app.core import outgoing
from app.core.outgoing import Outgoing
from app.inbox.signatures import sns
from app.inbox.signatures.proof import SignatureInvalid
from app.inbox.signatures.sns import Certificates, CertificateUnavailable, fetch_certificate


def make_certificate(key):
    """A self-signed certificate for localhost, as PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def renew_client(app, monkeypatch):
    """Make a client that asks private addresses too."""

    def renew():
        monkeypatch.setitem(app.extensions, "guarded_outgoing", Outgoing(only_public=False))

    renew()
    with app.app_context():
        yield renew


@pytest.fixture
def server(rsa_key, tmp_path, monkeypatch, renew_client):
    """The address of a TLS server that the process trusts: /ok.pem, /redirect.pem, /<status>."""
    pem = make_certificate(rsa_key)
    elliptic = make_certificate(ec.generate_private_key(ec.SECP256R1()))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            bodies = {"/ok.pem": pem, "/elliptic.pem": elliptic, "/text.pem": b"hello"}
            status = 200 if self.path in bodies else int(self.path[1:4])
            self.send_response(status)
            self.send_header("Location", "/ok.pem")
            self.end_headers()
            self.wfile.write(bodies.get(self.path, b""))

        def log_message(self, *args):
            pass

    private = rsa_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = tmp_path / "server.pem"
    chain.write_bytes(private + pem)
    monkeypatch.setattr(outgoing, "TLS", ssl.create_default_context(cafile=str(chain)))
    renew_client()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
        threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
        yield f"https://localhost:{httpd.server_port}"
        httpd.shutdown()


class TestFetchingACertificate:
    def test_gives_its_public_key(self, server, rsa_key):
        key = Certificates().public_key(f"{server}/ok.pem")

        assert key.public_numbers() == rsa_key.public_key().public_numbers()

    @pytest.mark.parametrize("path", ["302.pem", "404.pem", "text.pem", "elliptic.pem"])
    def test_an_address_without_one_is_a_bad_signature(self, server, path):
        with pytest.raises(SignatureInvalid) as refused:
            Certificates().public_key(f"{server}/{path}")

        assert not isinstance(refused.value, CertificateUnavailable)

    def test_a_failing_host_is_told_apart(self, server):
        with pytest.raises(CertificateUnavailable):
            fetch_certificate(f"{server}/503.pem")

    def test_a_host_that_nobody_trusts_is_no_source(self, server, monkeypatch, renew_client):
        monkeypatch.setattr(outgoing, "TLS", ssl.create_default_context())
        renew_client()

        with pytest.raises(CertificateUnavailable):
            fetch_certificate(f"{server}/ok.pem")

    def test_a_silent_host_costs_no_more_than_the_time_out(self, monkeypatch, renew_client):
        monkeypatch.setattr(sns, "FETCH_TIMEOUT", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            started = time.monotonic()

            with pytest.raises(CertificateUnavailable):
                fetch_certificate(f"https://127.0.0.1:{silent.getsockname()[1]}/a.pem")

        assert time.monotonic() - started < 2


class TestTheCache:
    def test_forgets_the_oldest_where_there_are_too_many(self, rsa_key, monkeypatch):
        monkeypatch.setattr(sns, "MAX_CACHED", 2)
        pem, fetched = make_certificate(rsa_key), []

        def fetch(url):
            fetched.append(url)
            return pem

        store = Certificates(fetch)
        for url in ("a", "b", "c", "c", "b", "a"):
            store.public_key(url)

        assert fetched == ["a", "b", "c", "a"]
