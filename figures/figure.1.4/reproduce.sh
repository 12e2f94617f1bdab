#!/bin/sh
# Figure 1.4: bytes moved by pairs of live trainings, and as simulated.
#   reproduce.sh             plots data/moved.csv
#   reproduce.sh --measure   trains, records and simulates again before (needs
#                            what deploy/quickstart builds, in build/ or in
#                            BUILD; takes seven minutes)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
