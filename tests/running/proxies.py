"""nginx or Caddy before the service and PgBouncer behind it, each as its file in docs/operations sets it up."""

import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, Instance
from tests.ports import free_port
from tests.running import documented
from tests.running.serving import HOST, answers, program, running, wait_until

WHOLE = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
{user}
worker_processes 1;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


@contextmanager
def nginx(web_port: int, folder: Path, *, stream_port: int = 9) -> Iterator[int]:
    """The documented site before ``web_port`` and ``stream_port``, on the port it gives."""
    port = free_port()
    site = documented.file("nginx.conf").replace("127.0.0.1:8000", f"{HOST}:{web_port}")
    site = site.replace("127.0.0.1:8001", f"{HOST}:{stream_port}")
    site = site.replace("listen 80;", f"listen {HOST}:{port};")
    settings = folder / "nginx.conf"
    settings.write_text(WHOLE.format(folder=folder, user="", site=site))
    command = [program("nginx"), "-c", str(settings), "-e", str(folder / "nginx.log")]
    with running(command, log=folder / "nginx.out"):
        wait_until(lambda: answers(port, "/healthz") == 200)
        yield port


@contextmanager
def caddy(web_port: int, folder: Path, *, stream_port: int = 9) -> Iterator[int]:
    """The documented site as :func:`nginx`, without TLS."""
    port = free_port()
    site = documented.file("Caddyfile").replace("127.0.0.1:8000", f"{HOST}:{web_port}")
    site = site.replace("127.0.0.1:8001", f"{HOST}:{stream_port}")
    site = site.replace("api.example.com {", f"http://{HOST}:{port} {{\n\tbind {HOST}")
    settings = folder / "Caddyfile"
    settings.write_text("{\n\tadmin off\n}\n" + site)
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(settings)]
    with running(command, environ={"HOME": str(folder)}, log=folder / "caddy.out"):
        wait_until(lambda: answers(port, "/healthz") == 200)
        yield port


@contextmanager
def pgbouncer(instance: Instance, folder: Path, *, connections: int) -> Iterator[str]:
    """PgBouncer before the instance's database, with so many connections to it; its URL.

    The account of PostgreSQL must be able to enter ``folder``.
    """
    bouncer, port = program("pgbouncer"), free_port()
    replaced = {
        "host=127.0.0.1": f"host={instance.sockets}",
        "listen_port = 6432": f"listen_port = {port}",
        "default_pool_size = 20": f"default_pool_size = {connections}",
        "/etc/pgbouncer/userlist.txt": str(folder / "users"),
        "auth_type = scram-sha-256": "auth_type = trust",
    }
    settings = documented.file("pgbouncer.ini")
    for documented_value, value in replaced.items():
        settings = settings.replace(documented_value, value)
    (folder / "users").write_text(f'"{APPLICATION_ROLE}" ""\n')
    (folder / "pgbouncer.ini").write_text(settings + "unix_socket_dir =\n")
    owner = pwd.getpwuid(instance.sockets.stat().st_uid).pw_name
    command = [bouncer, "--user", owner, str(folder / "pgbouncer.ini")]
    log = folder / "pgbouncer.log"
    with documented.role_settings(instance), running(command, log=log) as process:
        wait_until(lambda: "process up" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield f"postgresql://{APPLICATION_ROLE}@{HOST}:{port}/{DATABASE}"
