#!/usr/bin/env bash
# Installs what is missing, builds everything with warnings as errors, runs all tests. The last line
# is "N passed, N failed"; the exit code is 0 only when none failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/install_packages.sh

jobs="$(nproc)"
cmake --preset ci
cmake --build --preset ci --parallel "$jobs"

results="$PWD/build/ci/ctest.xml"
rm -f "$results"
status=0
ctest --preset ci --parallel "$jobs" --output-junit "$results" || status=$?
if [[ ! -s "$results" ]]; then
  echo "test: ctest did not run (exit code $status)" >&2
  exit 1
fi

count() {
  grep -m 1 -o "[[:space:]]$1=\"[0-9]*\"" "$results" | tr -dc '0-9'
}
failed="$(count failures)"
passed=$(($(count tests) - failed - $(count skipped) - $(count disabled)))
[[ $status -ne 0 && $failed -eq 0 ]] && echo "test: ctest ended with exit code $status" >&2
echo "$passed passed, $failed failed"
[[ $status -eq 0 && $failed -eq 0 && $passed -gt 0 ]]
