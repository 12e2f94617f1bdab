"""Runs Python programs, one at a time, each in a child of a process that has
imported TensorFlow: that takes seconds. What the environment says when TensorFlow
is imported is the process's; what it says when devices are made, the program's.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


class ReadyPython:
    def __init__(self, **env):
        self._process = subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, **env}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end(self):
        self._process.communicate()

    def run(self, text, *arguments, **env):
        """Runs `text`, as `python -c` does, and waits for its end."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = (pathlib.Path(folder, name) for name in ("out", "err"))
            files = [os.devnull, str(out), str(err)]
            print(json.dumps([text, arguments, env, files]),
                  file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(
                text, code, out.read_text(), err.read_text())


def main():
    # Keras imports these where they are, which takes a third of the time.
    sys.modules.update(sklearn=None, matplotlib=None)
    import tensorflow
    tensorflow.keras  # Is imported when it is used.
    for line in sys.stdin:
        text, arguments, env, files = json.loads(line)
        if os.fork() == 0:
            break
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
    else:
        return
    for descriptor, file in enumerate(files):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.update(env)
    sys.argv[1:] = arguments
    exec(compile(text, "<program>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
