#!/bin/sh
# Figure 5.1: operators with METS against those without.
#   reproduce.sh             makes data/*.csv of the profiles, and plots them
#   reproduce.sh --measure   records before (needs what deploy/quickstart builds,
#                            in build/ or in BUILD); a GPU's: ../gpu/zoo
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  "$here/../python.sh" "$here/measure.py" "${BUILD:-$here/../../build}"
fi
"$here/../python.sh" "$here/tables.py"
"$here/../python.sh" "$here/plot.py"
