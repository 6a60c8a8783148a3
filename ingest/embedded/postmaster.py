"""What is known of a PostgreSQL server from outside: its postmaster.pid, its process, its socket, its log.

The file outlives a killed server, and its process number may since belong to a stranger, so the file alone
proves nothing: a server is there if its socket answers, or if the process works in this very cluster.
"""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_ANSWER_SECONDS = 5.0
_TLS_REQUEST = struct.pack("!ii", 8, 80877103)  # SSLRequest of the frontend/backend protocol

STARTING, READY = "starting", "ready"  # and "stopping"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The content of a postmaster.pid; `port` only names the socket, nothing listens on the network."""

    pid: int
    port: int
    socket_dir: Path
    state: str

    @property
    def socket(self) -> Path:
        return self.socket_dir / f".s.PGSQL.{self.port}"

    def answers(self) -> bool:
        """Say whether a server answers on the socket: asked for TLS it must say yes or no, which takes 1-2 ms.

        That a connection is accepted is not enough: the kernel accepts for a server that is stopped or dying.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_ANSWER_SECONDS)
            try:
                probe.connect(str(self.socket))
                probe.sendall(_TLS_REQUEST)
                return probe.recv(1) in {b"N", b"S"}
            except BlockingIOError:  # the queue is full: busy, but there
                return True
            except OSError:
                return False


def find_postmaster(cluster: Path) -> Postmaster | None:
    """Read the cluster's postmaster.pid, None if there is none; one still being written means starting."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        # process, data directory, start time, port, socket directory, address, shared memory, state
        process, _, _, port, socket_dir, _, _, state = [*lines, *[""] * 8][:8]
        return Postmaster(abs(int(process)), int(port or 0), Path(socket_dir), state.strip() or STARTING)
    except (FileNotFoundError, ValueError):
        return None


def works_in(cluster: Path, pid: int) -> bool:
    """Say whether that process is this cluster's server.

    PostgreSQL itself only asks whether the number is in use, and so refuses to start for good when, after a
    reboot, it belongs to another process of the same user. A zombie (no init in a container) has no
    directory, a stranger has another one.
    """
    import psutil  # type: ignore[import-untyped]  # comes with the wheel; 15 ms, needed only off the fast path

    try:
        return Path(psutil.Process(pid).cwd()) == cluster
    except psutil.Error:
        return False


def read_messages(log: Path, offset: int = 0) -> list[str]:
    """Return the messages since `offset`, at most the last 16 KB of them, without time and process."""
    try:
        with log.open("rb") as file:
            file.seek(max(offset, file.seek(0, 2) - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.split("] ", 1)[-1].strip() for line in text.splitlines() if line.strip()]
