#!/usr/bin/env bash
# The window of the bundle starts without an environment, from another folder, with its own Qt.
#   tests/packages/run_gui_bundle.sh BUILD
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
tar --extract --gzip --file "$(tools/make_gui_bundle.sh "$1" "$empty/dist")" --directory "$empty" --strip-components=1
job="$PWD/configs/jobs/gpt2-single.json"
cd "$empty"

fail() {
  echo "tests/packages: $*" >&2
  exit 1
}
elsewhere="$(LD_LIBRARY_PATH="$PWD/lib" ldd bin/shardplan-gui plugins/platforms/*.so | grep -E 'libQt6|libicu|not found' |
  grep -v "=> $PWD/lib" || true)"
[[ -z "$elsewhere" ]] || fail "libraries that are not in the bundle: $elsewhere"
env --ignore-environment PATH=/usr/bin:/bin XDG_RUNTIME_DIR="$empty" HOME="$empty" LD_DEBUG=libs LD_DEBUG_OUTPUT="$empty/loaded" \
  ./shardplan-gui --job "$job" --page verdict --export verdict.png
grep -q 'calling init: .*/lib/libQt6Widgets' "$empty"/loaded.* || fail "Qt is not the bundle's"
[[ "$(head -c 4 verdict.png | tail -c 3)" == PNG ]] || fail "no picture was written"
echo "tests/packages: ok"
