#!/usr/bin/env bash
# Makes the Debian packages of a build folder: shardplan, shardplan-validate, shardplan-doc and, where
# Qt was found, shardplan-gui.
#   tools/make_packages.sh [BUILD] [FOLDER]     default: build/release, built here, and build/dist
# Prints the paths of the packages.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/release}"
to="${2:-build/dist}"

for tool in help2man dpkg-shlibdeps; do
  command -v "$tool" >/dev/null && continue
  echo "make_packages: needs $tool (Debian: help2man, dpkg-dev)" >&2
  exit 1
done
[[ $# -gt 0 ]] || cmake --preset release >&2
cmake --build "$build" --parallel "$(nproc)" >&2
cmake --build "$build" --target manual completions >&2

staged="$(mktemp -d)"
trap 'rm -rf "$staged"' EXIT
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
  cpack --config "$build/CPackConfig.cmake" -B "$staged" >&2
mkdir -p "$to"
for package in "$staged"/*.deb; do
  mv "$package" "$to/"
  echo "$to/$(basename "$package")"
done
