"""Runs Python programs that use TensorFlow in children of a process that has
imported it: that takes longer than many of them.

    forks.py SOCKET                      that process; it ends when its stdin does
    forks.py SOCKET PROGRAM [ARGUMENT…]  runs a program in a child of it, with the
                                         environment and the streams of this one
"""

import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback


def ask(path, words):
    """Runs a program; gives its exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(path)
        socket.send_fds(channel,
                        [json.dumps([words, dict(os.environ)]).encode()],
                        [0, 1, 2])
        return int(channel.recv(16) or 1)


def serve(path):
    """Returns in a child, with its channel to who asks; ends otherwise."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            readable, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in readable:
                sys.exit()
            channel, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return channel
            channel.close()


def run(channel):
    """Runs the program; ends with it, or with who asked."""
    message, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
    for stream, descriptor in enumerate(streams):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.argv, environment = json.loads(message)
    os.environ.clear()
    os.environ.update(environment)

    def watch():
        channel.recv(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    sys.path[0] = os.path.dirname(sys.argv[0])
    code = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        else:
            code = int(end.code or 0)
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    channel.send(str(code).encode())
    os._exit(code)


def main():
    path, *words = sys.argv[1:]
    if words:
        sys.exit(ask(path, words))
    # Keras imports these where they are, which takes seconds.
    sys.modules.update(sklearn=None, matplotlib=None)
    import tensorflow
    tensorflow.keras  # Is imported when it is used.
    run(serve(path))


if __name__ == "__main__":
    main()
