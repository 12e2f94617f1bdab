#!/bin/sh
# Figure 4.2: control traffic by sessions.
#   reproduce.sh             plots data/traffic.csv
#   reproduce.sh --measure   measures before (needs what tests/run builds,
#                            in build/ or in BUILD, and strace)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
