#!/bin/sh
# Figure 1.4: bytes moved by live pairs of jobs, and as simulated.
#   reproduce.sh             plots data/played.csv and data/moved.csv
#   reproduce.sh --play      plays and simulates the recordings in data again
#                            before (needs metsd, metsctl, mets-sim and
#                            mets_player in build/ or in BUILD)
#   reproduce.sh --measure   records again before that (needs what
#                            deploy/quickstart builds)
#   reproduce.sh --train     trains and simulates pairs of Keras trainings, too
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
case $1 in
--measure) "$here/../python.sh" "$here/measure.py" "$build" ;;
--train) "$here/../python.sh" "$here/measure.py" "$build" --train ;;
esac
if [ "$1" = --measure ] || [ "$1" = --train ] || [ "$1" = --play ]; then
  "$here/../python.sh" "$here/play.py" "$build"
fi
"$here/../python.sh" "$here/plot.py"
