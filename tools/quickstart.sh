#!/usr/bin/env bash
# Installs what is missing, builds the release programs, asks a first question, and runs a small job
# for real on the CPU: predicted beside measured.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/install_packages.sh

log=build/quickstart.log
mkdir -p build
run_quietly() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "quickstart: '$*' failed; all of its output is in $log" >&2
    exit 1
  fi
}

: >"$log"
echo "Building shardplan; the first time takes a few minutes ..." >&2
run_quietly cmake --preset release
run_quietly cmake --build --preset release --parallel "$(nproc)" --target shardplan shardplan-validate

program=build/release/planner/shardplan
question=(fit llama-2-7b 4xA100-40GB)
printf '\n$ %s %s\n\n' "$program" "${question[*]}"
status=0
"$program" "${question[@]}" || status=$?
# 4 is an answer too: it does not fit.
[[ $status -eq 0 || $status -eq 4 ]] || exit "$status"

job=configs/jobs/gpt2-tiny-native.json
validate=build/release/validator/shardplan-validate
printf '\n$ %s %s --device host\n\n' "$validate" "$job"
"$validate" "$job" --device host
