#!/bin/sh
# Figure 1.3: what one decision costs, against sessions and buffers.
#   reproduce.sh             plots data/decisions.csv
#   reproduce.sh --measure   measures again before (build/bin/tests must hold
#                            daemon_core_benchmark; BUILD names another build
#                            directory)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
