#!/usr/bin/env bash
# cmake --install into an empty folder: everything is where it belongs, an
# operator's configuration stays, and what was installed runs from there.
set -euo pipefail
BUILD="$1" PREFIX="$2"  # The build folder and its CMAKE_INSTALL_PREFIX.
work=$(mktemp -d)
trap 'kill "${daemon:-}" 2> /dev/null || true; rm -rf "$work"' EXIT

DESTDIR="$work" cmake --install "$BUILD" > /dev/null
root="$work$PREFIX"
for file in bin/metsd bin/metsctl bin/mets-sim bin/mets-bench-worker \
  lib/mets/libmets.so lib/mets/libmets_torch.so lib/mets/python/mets/torch.py \
  bin/mets-opspeedup lib/mets/python/opspeedup/wire.py \
  include/mets/mets.h etc/mets/metsd.toml lib/systemd/system/metsd.service \
  lib/sysusers.d/mets.conf lib/tmpfiles.d/mets.conf share/doc/mets/metsd.toml \
  share/doc/mets/failure_model.md share/mets/prometheus/alerts.yml \
  share/mets/grafana/overview.json; do
  [ -f "$root/$file" ] || { echo "not installed: $file"; exit 1; }
done
if grep -r '@[A-Z_]*@' "$root/lib/systemd"; then
  echo "the unit has places that nobody filled in"; exit 1
fi
grep -q "ExecStart=$PREFIX/bin/metsd " "$root/lib/systemd/system/metsd.service"

echo 'policy = "next_use"' > "$root/etc/mets/metsd.toml"
DESTDIR="$work" cmake --install "$BUILD" > /dev/null
grep -q next_use "$root/etc/mets/metsd.toml"
"$root/bin/metsd" --check-config --config "$root/etc/mets/metsd.toml" |
  grep -q 'policy: next_use'

"$root/bin/metsd" --run-dir "$work/run" --device host:64MiB --swap-space 64MiB \
  2> "$work/log" &
daemon=$!
for _ in $(seq 100); do
  grep -q ready "$work/log" && break
  sleep 0.1
done
lib=$("$root/bin/metsctl" --run-dir "$work/run" run --job a -- \
  sh -c 'echo "$METS_LIBRARY_DIR"')
[ "$lib" = "$root/lib/mets" ] || { echo "METS_LIBRARY_DIR is '$lib'"; exit 1; }
"$root/bin/metsctl" --run-dir "$work/run" bench --move 16MiB > "$work/bench"
if grep -e ' -[0-9]' "$work/bench"; then
  echo "no rate is negative"; exit 1
fi
"$root/bin/metsctl" --run-dir "$work/run" report --python true --out "$work/r.tgz" > /dev/null
tar -xzOf "$work/r.tgz" --wildcards '*/metsd.toml' | grep -q next_use ||
  { echo "the report has another configuration"; exit 1; }
echo "installed and running from $root"
