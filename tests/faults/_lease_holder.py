"""One process of ``python -m tests.faults leases``: it takes units until SIGTERM, and counts them.

Its arguments are the service's address, a key, the file of the counts, its place there, and by how
many seconds its clock is wrong. The count contains units that are asked for, so a killed process
has never taken more.
"""

import mmap
import random
import signal
import struct
import sys
import threading
import time


def main(url: str, key: str, counts: str, place: int, offset: float) -> None:
    right = time.time
    time.time = lambda: right() + offset
    from controlplane.limits import Limits

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    taken = 0
    with open(counts, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        limits = Limits(url, key, ttl=5)
        while not ended.wait(random.uniform(0.002, 0.02)):
            n = random.randint(1, 3)
            struct.pack_into("q", memory, place * 8, taken + n)
            if limits.allow("calls", n):
                taken += n
            struct.pack_into("q", memory, place * 8, taken)
        limits.close()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5]))
