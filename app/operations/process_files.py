"""The files in which prometheus_client stores the metrics of each web process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector


def metrics_in(folder: Path) -> Iterable[Metric]:
    """The metrics of all processes. A process that was killed at its start leaves an empty file."""
    with _locked(folder, LOCK_SH):
        files = [str(file) for file in folder.glob("*.db") if file.stat().st_size]
        found: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return found


def merge_ended(folder: Path, process_id: int) -> None:
    """Merge the files of a process that has ended into one file for each kind of metric.

    If another process is reading the files at this moment, nothing is merged.
    """
    with suppress(BlockingIOError), _locked(folder, LOCK_EX | LOCK_NB):
        for ended in folder.glob(f"*_{process_id}.db"):
            if ended.stat().st_size:
                kind = ended.name.removesuffix(f"_{process_id}.db")
                _add(ended, folder / f"{kind}_ended.db", is_gauge=kind.startswith("gauge"))
            ended.unlink()


def _add(ended: Path, total: Path, *, is_gauge: bool) -> None:
    values: Any = MmapedDict(str(total))  # type: ignore[no-untyped-call]
    for key, value, at, _ in MmapedDict.read_all_values_from_file(str(ended)):  # type: ignore[no-untyped-call]
        known, known_at = values.read_value(key)
        if not is_gauge:
            values.write_value(key, known + value, 0.0)
        elif at > known_at:  # of a gauge, the most recent value is stored
            values.write_value(key, value, at)
    values.close()


@contextmanager
def _locked(folder: Path, operation: int) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        flock(file, operation)
        yield
