#!/bin/sh
# Figure 1.2: two jobs that share a device, against serial and fixed quanta.
#   reproduce.sh             plots data/pairs.csv
#   reproduce.sh --measure   simulates again before (build/bin must hold
#                            mets-sim; BUILD names another build directory;
#                            takes a minute)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
