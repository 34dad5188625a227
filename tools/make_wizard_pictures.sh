#!/usr/bin/env bash
# Renders every page of the wizard in its three languages at 1366×768, and the verdict in the dark and
# at twice the density, to docs/img. Needs a build of shardplan-gui, and no display.
#   tools/make_wizard_pictures.sh [build/release]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program="${1:-build/release}/gui/shardplan-gui"
pictures=docs/img

# The pages show the job's path: one that is the same everywhere.
folder="${TMPDIR:-/tmp}/shardplan-pictures"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
cp -r configs/jobs configs/deepspeed "$folder"
job="$folder/jobs/llama-2-7b-zero3.json"

render() { # render PICTURE PAGE LANGUAGE THEME [OPTIONS...]
  "$program" --job "$job" --page "$2" --language "$3" --theme "$4" --size 1366x768 \
    --export "$pictures/wizard-$1.png" "${@:5}"
}

for page in start machine model training verdict plan compare accuracy validate rent; do
  for language in en ja ko; do
    suffix="-$language"
    [[ "$language" == en ]] && suffix=""
    render "$page$suffix" "$page" "$language" light
  done
done
render verdict-dark verdict en dark
render verdict-2x verdict en light --scale 2
