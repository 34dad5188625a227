#!/usr/bin/env bash
# Builds the program and asks it a first question; then builds the validator and runs a small job for
# real on the CPU: predicted beside measured. Installs the packages that these two need, and no others;
# where there is a CUDA toolkit, the headers of cuDNN's front end too.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/programs
log=build/quickstart.log
mkdir -p build
: >"$log"
run_quietly() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "quickstart: '$*' failed; all of its output is in $log" >&2
    exit 1
  fi
}
build_target() {
  run_quietly cmake --build "$build" --parallel "$(nproc)" --target "$1"
}

# Makes the program a command. A command of this name from elsewhere is left alone.
put_on_path() {
  local target="$PWD/$1" link
  link="$HOME/.local/bin/$(basename "$1")"
  if [[ ":$PATH:" == *":$HOME/.local/bin:"* && (-L "$link" || ! -e "$link") ]]; then
    mkdir -p "$HOME/.local/bin"
    ln -sfn "$target" "$link"
    echo "$(basename "$1") is a command now: $link"
  else
    echo "To have $(basename "$1") as a command:  export PATH=\"$(dirname "$target"):\$PATH\""
  fi
}

SECONDS=0
purposes=(build)
if command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; then purposes+=(cuda); fi
tools/install_packages.sh "${purposes[@]}"

echo "Building shardplan; the first time takes a few minutes ..." >&2
run_quietly cmake --preset programs
build_target shardplan

program=$build/planner/shardplan
question=(fit llama-2-7b 4xA100-40GB)
printf '\n$ shardplan %s\n\n' "${question[*]}"
status=0
"$program" "${question[@]}" || status=$?
# 4 is an answer too: it does not fit.
[[ $status -eq 0 || $status -eq 4 ]] || exit "$status"
printf '\nAnswered after %d s, packages and build included.\n' "$SECONDS"
put_on_path "$program"

printf '\nBuilding the validator, which runs such a step for real ...\n' >&2
build_target shardplan-validate
job=configs/jobs/gpt2-tiny-native.json
validate=$build/validator/shardplan-validate
printf '\n$ shardplan-validate %s --device host\n\n' "$job"
"$validate" "$job" --device host
echo
put_on_path "$validate"
