#!/bin/sh
# Figure 2.3: how long tensors are idle within a step, in figures/traces.
#   reproduce.sh             plots
#   reproduce.sh --measure   records those traces anew before (needs what
#                            deploy/quickstart builds, in build/ or in BUILD)
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --measure ]; then
  build=${BUILD:-$here/../../build}
  METS_BUILD_DIR=$build "$build/venv/bin/python" "$here/../traces/record.py"
fi
"$here/../python.sh" "$here/plot.py"
