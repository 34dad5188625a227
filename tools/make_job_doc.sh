#!/usr/bin/env bash
# Makes the tables of docs/reference/job.md anew from the descriptions of the options (core/options):
#   tools/make_job_doc.sh [PROGRAM]     default: the dev build's
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program="${1:-build/dev/planner/shardplan}"
"$program" catalog options --page docs/reference/job.md -o docs/reference/job.md
