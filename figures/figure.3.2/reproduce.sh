#!/bin/sh
# Figure 3.2: hand-over bandwidth beside that of the bus.
#   reproduce.sh   plots ../gpu/mover.json and ../gpu/cuda.json, which
#                  ../gpu/README.md says how to measure (it takes a GPU)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  echo "this takes a GPU: $here/../gpu/README.md has the commands" >&2
  exit 2
fi
"$here/../python.sh" "$here/plot.py"
