#!/usr/bin/env bash
# Makes the wheel from the libraries of a build folder, installs it into an empty virtual
# environment, and runs these tests there. Exit code 77, which ctest counts as skipped, where no
# packages can be had.
#   tests/python/run.sh BUILD          links the libraries of that folder
#   tests/python/run.sh WHEEL          tests a wheel that is there
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
subject="$1"

environment=build/python-test
rm -rf "$environment"
python3 -m venv "$environment"
pip() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
if ! pip install pytest mypy pandas transformers; then
  echo "tests/python: skipped: pip cannot install pytest here" >&2
  exit 77
fi

if [[ -d "$subject" ]]; then
  subject="$(tools/make_wheel.sh --linked "$subject" build/dist-linked)"
fi
pip install "$subject"
"$environment/bin/python" -m pytest tests/python -q -rs -p no:cacheprovider
