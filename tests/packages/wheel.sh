#!/usr/bin/env bash
# Installs the wheel in a new virtual environment, trains with its program and its module, and writes the losses to BUILD/losses-wheel.txt.
# Usage: wheel.sh BUILD PACKAGES
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") packages=$(realpath "$2")
rm -rf "$build/venv"
python3 -m venv "$build/venv"
version=$("$build/venv/bin/python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
"$build/venv/bin/pip" install --quiet --disable-pip-version-check "$packages"/octet_train-*-"$version"-*.whl
export PATH=$build/venv/bin:$PATH
octet --version
"$tests/train.sh" "$build/try-wheel" > "$build/losses-wheel.txt"
cd "$build/try-wheel"
python - << 'EOF'
import pathlib
import octet
losses = []
octet.train("runs/small/config.toml", lambda step: losses.append(step.loss), set={"name": "module"})
program = [float(line.split()[1]) for line in pathlib.Path("../losses-wheel.txt").read_text().splitlines()]
assert losses == program, (losses, program)
print(f"octet {octet.__version__}: the module has the losses of the program")
EOF
