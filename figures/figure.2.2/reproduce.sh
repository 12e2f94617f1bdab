#!/bin/sh
# Figure 2.2: the largest batch in a device of fixed size.
#   reproduce.sh             plots data/batches.csv
#   reproduce.sh --measure   trains before (needs what deploy/quickstart builds,
#                            in build/ or in BUILD)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
