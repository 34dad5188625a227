#!/usr/bin/env bash
# Writes the rules into docs/reference/lint.md, below its last line of introduction:
#   tools/make_lint_doc.sh [PROGRAM]     default: the dev build's
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program="${1:-build/dev/planner/shardplan}"
page="$(mktemp)"
trap 'rm -f "$page"' EXIT
sed '/^## /,$d' docs/reference/lint.md >"$page"
"$program" lint --rules --format markdown >>"$page"
cp "$page" docs/reference/lint.md
