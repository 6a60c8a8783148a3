"""Tether: `python -m ingest.demo.tether PROGRAM ARGUMENT...` becomes PROGRAM, which ends when its parent does.

Ctrl-C is answered by the demo itself; this is for the day it is killed with SIGKILL and can answer nothing. Linux
only (prctl): elsewhere the program simply runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for SIGTERM at the parent's death, then become the program."""
    if sys.platform == "linux":
        parent = int(os.environ.pop("INGEST_DEMO_PARENT", "0"))
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if parent and os.getppid() != parent:  # it died before we asked
            return
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 -- the demo's own programs, by their paths


if __name__ == "__main__":
    main()
