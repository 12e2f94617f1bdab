#!/bin/sh
# Figure 3.3: two jobs in turns of different lengths.
#   reproduce.sh             plots data/quanta.csv
#   reproduce.sh --measure   simulates before (needs what deploy/quickstart
#                            builds, in build/ or in BUILD; takes a minute)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
