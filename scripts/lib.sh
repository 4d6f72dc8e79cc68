# Shared by the scripts beside it; sourced, not run. Goes to the repository's root whatever folder it is called from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

started=$SECONDS
step() { printf '\n== %s  (%d s so far)\n' "$1" $((SECONDS - started)) >&2; }

# What building the program needs, and what its tests need besides.
program_packages="g++ cmake ninja-build libdnnl-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev libboost1.81-dev libjs-dygraphs libopenmpi-dev"
test_packages="libgtest-dev python3-venv python3-dev python3-numpy slurm-wlm munge iproute2"
fuzz_packages="clang libclang-rt-dev"

# The CUDA compiler, or nothing.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)

# install PACKAGE...: those that are missing, by apt; prints the list first.
install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "all packages are installed" >&2
    return
  fi
  echo "installing: ${missing[*]}" >&2
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "not root, and there is no sudo: ask somebody to run  apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
