# shellcheck shell=bash
# Set-up shared by deploy/quickstart and tests/run; source it, with ROOT set to
# the checkout. Each step does nothing when its result is there already, so
# that a second run needs no network.

BUILD="${BUILD:-$ROOT/build}"
VENV="$BUILD/venv"
PACKAGES=(
  g++ cmake ninja-build ccache pkg-config python3 python3-venv
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libabsl-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
  libtomlplusplus-dev libcli11-dev libspdlog-dev libfmt-dev libsystemd-dev
  nlohmann-json3-dev liblzma-dev libcpp-httplib-dev libncurses-dev tmux
)
PYTHON_PACKAGES=(tensorflow-cpu==2.21.0 "scikit-learn>=1.5")
# What only tests need.
TEST_PYTHON_PACKAGES=(tensorboard==2.20.0 "pandas>=2.2" matplotlib==3.9.2)

# CUDA's header, for machines without the toolkit. A licence text comes with it.
CUDA_HEADERS=nvidia-cuda-runtime==13.0.96

# Prints the comment at the head of the calling script, and ends it, where its
# first argument asks for help.
help_if_asked() {
  case "${1:-}" in
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;;
  esac
}
say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Installs the Debian or Ubuntu packages that are missing.
setup_packages() {
  command -v dpkg-query > /dev/null ||
    die "this script sets up Debian 12 and Ubuntu 24.04; elsewhere install" \
        "these packages' equivalents and run cmake: ${PACKAGES[*]}"
  local missing=() package
  for package in "${PACKAGES[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null)" = installed ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null ||
      die "these packages are missing and need root: ${missing[*]}"
    sudo=(sudo)
  fi
  say "installing packages: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

# The first Python that TensorFlow 2.21 has wheels for.
find_python() {
  local python
  for python in python3 python3.12 python3.11 python3.13 python3.10 /usr/bin/python3; do
    "$python" -c 'import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null &&
      { command -v "$python"; return; }
  done
  die "no Python 3.10 to 3.13 with the venv module found"
}

# Installs Python packages into it, and compiles them on all processors: pip would
# on one.
pip_install() {
  "$VENV/bin/pip" install -q --disable-pip-version-check --no-compile "$@"
  "$VENV/bin/python" -m compileall -q -j 0 "$VENV/lib" > /dev/null ||
    true  # Some packages have templates of programs.
}

# A virtual environment with TensorFlow and scikit-learn.
setup_venv() {
  local want="${PYTHON_PACKAGES[*]}"
  [ "$(cat "$VENV/mets-packages" 2> /dev/null)" = "$want" ] && return
  say "installing into $VENV: $want"
  local python
  python=$(find_python)
  rm -rf "$VENV"
  "$python" -m venv "$VENV"
  pip_install "${PYTHON_PACKAGES[@]}"
  echo "$want" > "$VENV/mets-packages"
}

# What tests need in it besides.
setup_test_packages() {
  local want="${TEST_PYTHON_PACKAGES[*]}"
  [ "$(cat "$VENV/mets-test-packages" 2> /dev/null)" = "$want" ] && return
  say "installing into $VENV: $want"
  pip_install "${TEST_PYTHON_PACKAGES[@]}"
  echo "$want" > "$VENV/mets-test-packages"
}

# cuda.h in the build folder, unless there is a toolkit. Without it METS is built
# without CUDA devices.
setup_cuda_headers() {
  [ -f /usr/local/cuda/include/cuda.h ] && return
  [ -f "$BUILD/cuda/nvidia/cu13/include/cuda.h" ] && return
  say "installing into $BUILD/cuda: $CUDA_HEADERS"
  "$VENV/bin/pip" install -q --disable-pip-version-check --no-deps \
    --target "$BUILD/cuda" "$CUDA_HEADERS" ||
    say "$CUDA_HEADERS cannot be installed: building without CUDA devices"
}

# Prometheus and promtool in the build folder: the Debian package unpacked, not
# installed, so that no service starts. Without it, tests that need it skip.
setup_prometheus() {
  command -v promtool prometheus > /dev/null && return
  local folder="$BUILD/prometheus"
  [ -x "$folder/usr/bin/promtool" ] && return
  say "unpacking prometheus into $folder"
  mkdir -p "$folder"
  (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb . &&
    rm prometheus_*.deb) ||
    say "prometheus cannot be had: tests that need it skip"
}

# Configures once and builds: the targets named, else everything. Files are
# compiled in groups, because most of the time goes into their headers.
setup_build() {
  [ -f "$BUILD/build.ninja" ] ||
    cmake -S "$ROOT" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 \
      -DMETS_WITH_TENSORFLOW=ON -DMETS_TF_PYTHON="$VENV/bin/python" > "$BUILD/configure.log" 2>&1 ||
    { cat "$BUILD/configure.log" >&2; die "cmake failed"; }
  cmake --build "$BUILD" ${1:+--target "$@"}
}

setup_all() {
  mkdir -p "$BUILD"
  setup_packages
  setup_venv
  setup_cuda_headers
  say "building (the first time takes minutes)"
  setup_build "$@"
}
