"""The instructions of the Dockerfile, and the processes of compose.yaml."""

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of the base image


class Instruction(NamedTuple):
    """One instruction, such as ``RUN`` with the rest of its line."""

    name: str
    value: str


@dataclass
class Image:
    """What the image is when its instructions have been executed."""

    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "root"
    command: list[str] = field(default_factory=list)
    health_check: list[str] = field(default_factory=list)


def instructions() -> list[Instruction]:
    """The Dockerfile's instructions in their order, with continued lines joined."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [Instruction(name, value.strip()) for name, value in found]


def note(image: Image, instruction: Instruction) -> bool:
    """Apply an instruction that runs nothing; whether it was one."""
    name, value = instruction
    match name:
        case "ENV":
            value = value.replace("$PATH", image.environment["PATH"])
            image.environment |= dict(one.split("=", 1) for one in shlex.split(value))
        case "WORKDIR":
            image.folder = value
        case "USER":
            image.user = value
        case "CMD":
            image.command = json.loads(value)
        case "HEALTHCHECK":
            image.health_check = json.loads(value[value.index("CMD") + 3 :])
        case "FROM" | "EXPOSE":
            pass
        case _:
            return False
    return True


def services() -> dict[str, Any]:
    """The services of compose.yaml that run the image."""
    document = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return {
        name: service
        for name, service in document["services"].items()
        if service["image"] == document["x-service"]["image"]
    }
