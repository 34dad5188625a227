#!/usr/bin/env bash
# Makes a tar of the program that runs on any x86-64 Linux: it is linked statically, and needs
# neither files nor environment.
#   tools/make_portable.sh [--linked BUILD] [FOLDER]     default: build/dist
# With --linked the libraries of that build folder are linked instead of building them: seconds in
# place of minutes, for tests. Prints the path of the tar.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/portable
configure=(--preset portable)
if [[ "${1:-}" == --linked ]]; then
  build=build/portable-linked
  configure+=(-B "$build" -D "SHARDPLAN_BUILT=$(cd "$2" && pwd)")
  shift 2
fi
to="${1:-build/dist}"

cmake "${configure[@]}" >&2
cmake --build "$build" --parallel "$(nproc)" --target shardplan >&2

program="$build/planner/shardplan"
if readelf --program-headers "$program" | grep -q INTERP; then
  echo "make_portable: $program needs a dynamic linker" >&2
  exit 1
fi

name="shardplan-$("$program" --version)-linux-$(uname -m)"
staged="$(mktemp -d)"
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged/$name" "$to"
cp "$program" LICENSE README.md CHANGELOG.md "$staged/$name/"
# The same commit gives the same bytes.
when="$(git log -1 --format=@%ct 2>/dev/null || echo @0)"
tar --create --sort=name --mtime="$when" --owner=0 --group=0 --numeric-owner \
  --directory "$staged" "$name" | gzip --no-name --best >"$to/$name.tar.gz.part"
mv "$to/$name.tar.gz.part" "$to/$name.tar.gz"
echo "$to/$name.tar.gz"
