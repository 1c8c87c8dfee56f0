"""``python -m tests.image``: build the image in a Debian folder, and run its processes read-only.

Executes each instruction of the Dockerfile, and each command and health check of compose.yaml,
without Docker. Needs root, debootstrap, and a mirror of Debian. Takes some three minutes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.dev.engines.instance import Instance
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from tests.image.instructions import ROOT, Image, instructions, note, services
from tests.ports import free_port

SUITE, MIRROR = "trixie", "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,ca-certificates"  # what the base image has beyond Debian
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What a build machine tells pip, such as an index or a certificate.
FOR_PIP = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
CHROOT = "/usr/sbin/chroot"
READ_ONLY = """
mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount -t tmpfs tmpfs "$0/tmp" \
&& mount -t tmpfs tmpfs "$0/dev/shm" && mkdir -p "$0$1" && mount --bind "$1" "$0$1" && mount -t proc proc "$0/proc" \
&& root=$0 && shift && exec /usr/sbin/chroot --userspec=10001:10001 "$root" "$@"
"""


def main() -> int:
    """0 where the image is built and every process is healthy."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        image = build(root)
        with engines(Path(folder) / "instance"):
            instance = Instance.at(Path(folder) / "instance")
            for path in (instance.sockets, *instance.sockets.iterdir()):
                path.chmod(0o777)  # the image's user connects
            run_services(root, image, instance)
    print("every instruction, command and health check has succeeded")
    return 0


def build(root: Path) -> Image:
    """Execute the Dockerfile in ``root``."""
    step(f"FROM: debootstrap {SUITE}")
    run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), MIRROR])
    for file in (CERTIFICATES, Path("/etc/resolv.conf")):
        shutil.copy(file, root / file.relative_to("/"))
    image = Image()
    for instruction in instructions():
        step(f"{instruction.name} {instruction.value[:80]}")
        if note(image, instruction):
            continue
        (root / image.folder[1:]).mkdir(parents=True, exist_ok=True)
        if instruction.name == "COPY":
            *sources, target = instruction.value.split()
            for source in sources:
                copy(ROOT / source, root / image.folder[1:] / target)
        else:
            assert instruction.name == "RUN", instruction
            environment = {**FOR_PIP, **image.environment}
            command = ["env", "-C", image.folder, "sh", "-c", instruction.value]
            run([CHROOT, str(root), *command], environment)
    return image


def run_services(root: Path, image: Image, instance: Instance) -> None:
    """Run the migrations, then all other services until their health checks succeed; stop them."""
    found = development_environment({"INSTANCE_DIR": str(instance.folder)})
    settings = {
        name: value
        for name, value in found.items()
        if name not in ("PRIVATE_INSTANCE", "INSTANCE_DIR", "MIGRATION_DATABASE_URL")
    }
    environment = {**image.environment, **settings}
    sockets = str(instance.sockets)

    def inside(command: Sequence[str]) -> list[str]:
        here = ["env", "-C", image.folder, *command]
        return ["unshare", "--mount", "sh", "-c", READ_ONLY, str(root), sockets, *here]

    found_services = services()
    step("migrations")
    owner = {"MIGRATION_DATABASE_URL": found["MIGRATION_DATABASE_URL"]}
    run(inside(found_services.pop("migrations")["command"]), {**environment, **owner})
    refused = subprocess.run(inside(["touch", "app/x"]), env=environment, capture_output=True)
    assert refused.returncode != 0, "the file system is not read-only"
    ports = {name: str(free_port()) for name in found_services}  # containers have a network each
    with started(
        {name: inside(one.get("command", image.command)) for name, one in found_services.items()},
        {name: {**environment, "PORT": port} for name, port in ports.items()},
    ):
        for name, service in found_services.items():
            check = [part.replace("8000", ports[name]) for part in image.health_check]
            if "healthcheck" in service:
                check = service["healthcheck"]["test"][1:]
            step(f"health check of {name}")
            until_healthy(inside(check), environment)


@contextmanager
def started(
    commands: Mapping[str, list[str]], environments: Mapping[str, Mapping[str, str]]
) -> Iterator[None]:
    """Run processes; afterwards SIGTERM has to end each within its grace period."""
    running = {
        name: subprocess.Popen(command, env=environments[name], stderr=subprocess.DEVNULL)
        for name, command in commands.items()
    }
    try:
        yield
        ended = [name for name, one in running.items() if one.poll() is not None]
        assert not ended, f"ended by themselves: {ended}"
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait(45)


def until_healthy(command: list[str], environment: Mapping[str, str]) -> None:
    """Repeat a health check until it succeeds, at most 60 s."""
    deadline = time.monotonic() + 60
    while subprocess.run(command, env=environment, capture_output=True).returncode != 0:
        assert time.monotonic() < deadline, f"never healthy: {command}"
        time.sleep(1)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Run to success, or show what it printed and end."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def step(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
