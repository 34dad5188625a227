#!/usr/bin/env bash
# Writes python/shardplan/flags.pyi, the keywords of the Python functions with their types, from the
# help of the program's commands:
#   tools/make_python_flags.sh [--check] [PROGRAM]     default: the release build's
# --check only says whether the file is out of date.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
check=false
if [[ "${1:-}" == --check ]]; then
  check=true
  shift
fi
program="${1:-build/release/planner/shardplan}"
stub=python/shardplan/flags.pyi

# flags COMMAND GROUP: those of the job, or the command's own. What the functions say themselves,
# such as the format, is left out.
flags() {
  "$program" "$1" --help | awk -v wanted="$2" '
    function type_of(word) {
      if (word == "true|false") return "bool | None"
      if (word == "NUMBER" || word ~ /^(FLOAT|INT|UINT)/) return "float | str | None"
      if (word == "LIST") return "Sequence[object] | str | None"
      if (word ~ /^TEXT/) return "Document | None"
      return "bool"
    }
    /^[A-Z].*:$/ { group = $0 == "Job:" ? "job" : "own" }
    group == wanted && match($0, /^  (-[a-z],)?--[a-z0-9-]+/) {
      flag = substr($0, RSTART, RLENGTH)
      sub(/^.*--/, "", flag)
      if (flag ~ /^(help|output|format|rules|explain|model|cluster)$/) next
      word = substr($0, RSTART + RLENGTH + 1)
      sub(/ .*/, "", word)
      gsub(/-/, "_", flag)
      printf "    %s: %s\n", flag, type_of(word)
    }'
}

of_command() { # of_command COMMAND CLASS BASE
  printf '\nclass %s(%s, total=False):\n' "$2" "$3"
  flags "$1" own
}

made="$(mktemp)"
trap 'rm -f "$made"' EXIT
{
  echo '"""The keywords of the questions, which are the flags of the commands."""'
  echo
  echo '# tools/make_python_flags.sh writes this file.'
  echo 'from collections.abc import Sequence'
  echo 'from typing import TypedDict'
  echo
  echo 'from .documents import Document'
  printf '\nclass JobFlags(TypedDict, total=False):\n'
  flags fit job
  printf '\nclass WholeJobFlags(JobFlags, total=False):\n'
  printf '    model: Document | None\n    cluster: Document | None\n'
  of_command fit FitFlags JobFlags
  of_command estimate EstimateFlags WholeJobFlags
  of_command search SearchFlags WholeJobFlags
  of_command lint LintFlags JobFlags
  of_command import ImportFlags WholeJobFlags
} >"$made"

if $check; then
  diff -u "$stub" "$made" || {
    echo "make_python_flags: $stub is out of date" >&2
    exit 1
  }
else
  cp "$made" "$stub"
fi
