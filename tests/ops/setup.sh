#!/usr/bin/env bash
# Sets up what the tests with label ops need: chromium, podman and runc, and the image
# localhost/mets-ops-base (Debian 12 with systemd and Python, made by debootstrap,
# because not every machine reaches a registry of images). As root. Each step does
# nothing when its result is there already.
#   tests/ops/setup.sh
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
. "$ROOT/deploy/setup.sh"
help_if_asked "$@"
[ $# = 0 ] || die "unknown argument '$1'; tests/ops/setup.sh takes none"

IMAGE=localhost/mets-ops-base
PACKAGES=(podman runc debootstrap systemd python3-yaml chromium chromium-driver)
INCLUDE=systemd,systemd-sysv,dbus,python3,ca-certificates
# What metsd and metsctl are linked with.
INCLUDE+=,libabsl20220623,libcivetweb1,libcpp-httplib0.11,libfmt9,libgrpc++1.51
INCLUDE+=,liblzma5,libncursesw6
INCLUDE+=,libprometheus-cpp-core1.0,libprometheus-cpp-pull1.0,libprotobuf32
INCLUDE+=,libspdlog1.10,libsystemd0

[ "$(id -u)" = 0 ] || die "containers are tried as root"
setup_packages
setup_prometheus
have=$(podman image inspect --format '{{index .Labels "packages"}}' "$IMAGE" 2> /dev/null || true)
[ "$have" = "$INCLUDE" ] && exit
say "making the image $IMAGE"
uri=$(grep -hm1 -oP '^URIs: \K\S+' /etc/apt/sources.list.d/*.sources 2> /dev/null ||
  grep -hm1 -oP '^deb (\[.*\] )?\K\S+' /etc/apt/sources.list)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase --include="$INCLUDE" bookworm "$work/root" "$uri" > "$work/log" ||
  { tail -20 "$work/log"; die "debootstrap failed"; }
tar -C "$work/root" -c . | podman import --change "LABEL packages=$INCLUDE" - "$IMAGE" > /dev/null
