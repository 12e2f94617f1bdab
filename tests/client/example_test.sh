#!/bin/sh
# example_test.sh METSD EXAMPLE [ARGUMENT…]: the example works as it says.
set -eu
dir=$(mktemp -d /tmp/mets-XXXXXX)
mkfifo "$dir/log"
"$1" --run-dir "$dir" --status-address off \
     --device host:96MiB --swap-space 512MiB 2>"$dir/log" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
exec 3<"$dir/log"
while read -r line <&3; do
  case $line in *ready*) break ;; esac
done
cat <&3 &
shift
METS_RUN_DIR=$dir "$@"
