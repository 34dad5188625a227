#!/usr/bin/env bash
# Makes the tables of docs/reference/job.md anew from the descriptions of the options (core/options):
#   tools/make_job_doc.sh [PROGRAM]     default: the dev build's
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program="${1:-build/dev/planner/shardplan}"
"$program" catalog options --page docs/reference/job.md -o docs/reference/job.md
