#!/bin/sh
# Runs Python with what requirements.txt pins; installs it once, into
# build/figures-venv.
set -e
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../build/figures-venv
stamp=$venv/requirements.txt
if ! cmp -s "$here/requirements.txt" "$stamp"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$stamp"
fi
PYTHONPATH=$here exec "$venv/bin/python" "$@"
