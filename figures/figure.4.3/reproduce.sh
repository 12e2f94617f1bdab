#!/bin/sh
# Figure 4.3: allocators on recorded allocations.
#   reproduce.sh             plots data/*.json, data/pools.csv
#   reproduce.sh --measure   measures before (needs what tests/run builds,
#                            in build/ or in BUILD)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
