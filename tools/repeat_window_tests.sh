#!/usr/bin/env bash
# Drives the windows through their journeys under Xvfb so many times in a row, 30 if it is not said;
# stops at the first run that fails, and shows it.
#   tools/repeat_window_tests.sh [TIMES [build/dev]]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
times="${1:-30}"
program="$(realpath "${2:-build/dev}/tests/gui/gui_window_test")"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

for ((run = 1; run <= times; ++run)); do
  if ! QT_QPA_PLATFORM=xcb xvfb-run -a -s "-screen 0 1600x900x24" "$program" --gtest_brief=1 \
    >"$log" 2>&1; then
    echo "run $run of $times failed:"
    cat "$log"
    exit 1
  fi
  echo "run $run of $times passed"
done
