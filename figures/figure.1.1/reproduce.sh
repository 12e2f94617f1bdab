#!/bin/sh
# Figure 1.1: peak memory against slowdown, each policy on each trace.
#   reproduce.sh             plots data/policies.csv
#   reproduce.sh --measure   simulates again before (build/bin must hold
#                            mets-sim; BUILD names another build directory)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/plot.py"
