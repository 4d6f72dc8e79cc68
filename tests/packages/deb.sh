#!/usr/bin/env bash
# Installs octet and octet-dev in a new Debian 12 that debootstrap makes, trains with the program, and builds examples/embed with
# find_package(octet). The losses must be those of BUILD/losses-wheel.txt, if the wheel was tried. Needs root. A GPU's toolkit is not installed
# there but bound into it, where the packages were built with one.
# Usage: deb.sh BUILD PACKAGES
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "$1") packages=$(realpath "$2")
system=${OCTET_TRY_ROOT:-$build/debian}
inside() { chroot "$system" env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }

[ -e "$system/etc/debian_version" ] || debootstrap --variant=minbase --include=ca-certificates bookworm "$system" > /dev/null
mkdir -p "$system/packages" "$system/tests" "$system/embed"
cp "$packages"/octet*.deb "$system/packages"
cp "$root"/tests/packages/*.sh "$system/tests"
cp "$root"/examples/embed/* "$system/embed"
inside apt-get update -qq
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/octet_*.deb' > /dev/null
inside octet --version
inside bash /tests/train.sh /try > "$build/losses-deb.txt"
[ ! -e "$build/losses-wheel.txt" ] || cmp "$build/losses-wheel.txt" "$build/losses-deb.txt"
[ ! -e "$build/losses-wheel.txt" ] || echo "package and wheel have the same losses"

inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/octet-dev_*.deb cmake ninja-build g++' > /dev/null
toolkit=$(realpath /usr/local/cuda 2>/dev/null || true)
if [ -n "$toolkit" ]; then
  mkdir -p "$system/usr/local/cuda"
  mount --bind -o ro "$toolkit" "$system/usr/local/cuda"
  trap 'umount "$system/usr/local/cuda"' EXIT
fi
inside cmake -S /embed -B /embed/build -G Ninja -D CMAKE_BUILD_TYPE=Release > /dev/null
inside cmake --build /embed/build
inside /embed/build/embed
inside sh -c "cd /try && /embed/build/fine_tune runs/small/weights data"
