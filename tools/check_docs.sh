#!/usr/bin/env bash
# Runs the commands that the documents show and says which lines of their outputs are out of date:
#   tools/check_docs.sh [PROGRAM]     default: the release build's
# In a block of ``` a line "$ shardplan ..." is a command, to the end of its "\" continuations; every
# other line must be part of its output, blanks apart.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program="${1:-build/release/planner/shardplan}"
if [[ ! -x "$program" ]]; then
  echo "check_docs: no program at $program" >&2
  exit 2
fi
stale=0

squeezed() { tr -s '[:space:]' ' '; }

check_file() {
  local file="$1" inside=false command="" output="" line text
  while IFS= read -r line; do
    if [[ "$line" == '```'* ]]; then
      if $inside; then inside=false; else inside=true; fi
      output=""
      continue
    fi
    $inside || continue
    if [[ "$line" == '$ shardplan '* || -n "$command" ]]; then
      command+=" ${line#'$ shardplan '}"
      if [[ "$command" == *\\ ]]; then
        command="${command%\\}"
        continue
      fi
      local -a arguments
      read -ra arguments <<<"$command"
      output="$("$program" "${arguments[@]}" 2>&1 | squeezed || true)"
      command=""
    elif [[ -n "$output" && -n "${line// /}" ]]; then
      text="$(squeezed <<<"$line")"
      text="${text# }"
      text="${text% }"
      if [[ "$output" != *"$text"* ]]; then
        echo "$file: not in the output any more: $line" >&2
        stale=$((stale + 1))
      fi
    fi
  done <"$file"
}

while IFS= read -r file; do check_file "$file"; done < <(echo README.md; find docs -name "*.md" | sort)
echo "check_docs: $stale lines out of date"
[[ $stale -eq 0 ]]
