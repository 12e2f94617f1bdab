"""A service manager that keeps descriptors (sd_notify's FDSTORE), as systemd does."""

import fcntl
import os
import resource
import socket
import subprocess
import tempfile
import threading

import harness

FIRST_PASSED = 3


def raise_limit():
    """To what is allowed; the half of it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most // 2


class ServiceStore:
    """Takes what a service sends to NOTIFY_SOCKET, in a thread, and starts it
    with what it has kept."""

    def __init__(self):
        # Above the numbers at which descriptors are passed.
        self._from = raise_limit()
        self._dir = tempfile.TemporaryDirectory(prefix="store-")
        self.path = f"{self._dir.name}/notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._lock = threading.Lock()
        self._kept = {}  # Descriptors by name.
        self.most = 1 << 20
        threading.Thread(target=self._receive, daemon=True).start()

    def names(self):
        with self._lock:
            return sorted(self._kept)

    def drop(self, name):
        with self._lock:
            os.close(self._kept.pop(name))

    def replace(self, name, descriptor):
        """Keeps `descriptor` instead of what has this name."""
        with self._lock:
            os.close(self._kept[name])
            self._kept[name] = self._copy(descriptor)

    def descriptor(self, name):
        """Stays the store's."""
        with self._lock:
            return self._kept[name]

    def settle(self):
        """Returns when all that was sent has been dealt with."""
        reader, writer = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.connect(self.path)
            socket.send_fds(own, [b"BARRIER=1"], [writer])
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)

    def close(self):
        """Closes what it keeps."""
        self.settle()
        for name in self.names():
            self.drop(name)

    def spawn(self, command, out):
        """Starts the service with what is kept for it."""
        self.settle()
        with self._lock:
            kept = dict(self._kept)

        def place():
            for i, descriptor in enumerate(kept.values()):
                os.dup2(descriptor, FIRST_PASSED + i)

        env = dict(os.environ, NOTIFY_SOCKET=self.path)
        if kept:
            env.update(LISTEN_FDS=str(len(kept)),
                       LISTEN_FDNAMES=":".join(kept))
        return subprocess.Popen(
            ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command],
            stdout=out, stderr=out, env=env, preexec_fn=place, close_fds=False)

    def _copy(self, descriptor):
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, self._from)

    def _receive(self):
        while True:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 4096, 253)
            words = dict(line.split("=", 1)
                         for line in data.decode().splitlines())
            with self._lock:
                self._follow(words, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)

    def _follow(self, words, descriptors):
        name = words.get("FDNAME", "stored")
        if "FDSTOREREMOVE" in words and name in self._kept:
            os.close(self._kept.pop(name))
        if "FDSTORE" in words:
            for descriptor in descriptors:
                if name in self._kept:
                    raise AssertionError(f"{name} is kept twice")
                if len(self._kept) < self.most:
                    self._kept[name] = self._copy(descriptor)


class Daemon(harness.Daemon):
    """A metsd whose descriptors are kept from one start to the next."""

    def __enter__(self):
        self.store = ServiceStore()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.store.close()

    def _spawn(self, command, out):
        return self.store.spawn(command, out)
