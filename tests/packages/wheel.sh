#!/usr/bin/env bash
# Installs the wheels in new virtual environments, trains with their program and their module, and writes the losses to
# BUILD/losses-wheel.txt. The wheel with the stable interface is tried with OCTET_STABLE_PYTHON; its losses must be those of the other one.
# Usage: wheel.sh BUILD PACKAGES
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") packages=$(realpath "$2")

# try PYTHON WHEEL LOSSES
try() {
  rm -rf "$build/venv"
  "$1" -m venv "$build/venv"
  "$build/venv/bin/pip" install --quiet --disable-pip-version-check "$2"
  (
    export PATH=$build/venv/bin:$PATH
    python --version
    octet --version
    "$tests/train.sh" "$build/try-wheel" > "$3"
    cd "$build/try-wheel"
    python - "$3" << 'EOF'
import pathlib
import sys
import octet
losses = []
octet.train("runs/small/config.toml", lambda step: losses.append(step.loss), set={"name": "module"})
program = [float(line.split()[1]) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
assert losses == program, (losses, program)
print(f"octet {octet.__version__}: the module has the losses of the program")
EOF
  )
}

system=$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || command -v python3)
version=$("$system" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
try "$system" "$(ls "$packages"/octet_train-*-"$version"-*.whl)" "$build/losses-wheel.txt"
stable=$(ls "$packages"/octet_train-*-cp312-abi3-*.whl 2> /dev/null || true)
if [ -n "$stable" ] && [ -n "${OCTET_STABLE_PYTHON:-}" ]; then
  try "$OCTET_STABLE_PYTHON" "$stable" "$build/losses-stable.txt"
  cmp "$build/losses-wheel.txt" "$build/losses-stable.txt"
fi
