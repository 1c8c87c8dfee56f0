"""The bytes of an import, in pieces, so that a worker on another machine can read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from uuid import UUID

from sqlalchemy import bindparam, select

from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.imports.models import ImportPiece

PIECE = 256 * 1024  # bytes
READ = Statement(
    "import_pieces.read",
    select(ImportPiece.body).where(
        ImportPiece.import_id == bindparam("import_id"), ImportPiece.number == bindparam("number")
    ),
)


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """The file's bytes in blocks of :data:`PIECE`; only the last one is shorter."""
    while True:
        block = b""
        while len(block) < PIECE and (part := file.read(PIECE - len(block))):
            block += part
        if not block:
            return
        yield block


def store(import_id: UUID, file: IO[bytes]) -> tuple[int, int]:
    """Store the file; the number of its bytes and of its lines."""
    size, lines, last = 0, 0, b"\n"
    for number, block in enumerate(blocks_of(file)):
        insert_row(ImportPiece, {"import_id": import_id, "number": number, "body": block})
        size, lines, last = size + len(block), lines + block.count(b"\n"), block[-1:]
    return size, lines + (last != b"\n")


def read(import_id: UUID, position: int) -> Iterator[bytes]:
    """The stored blocks from ``position`` on, each read when it is needed."""
    number, offset = divmod(position, PIECE)
    while body := READ.scalar(import_id=import_id, number=number):
        yield body[offset:]
        number, offset = number + 1, 0
