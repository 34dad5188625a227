#!/usr/bin/env bash
# Formats all tracked sources with clang-format; --check only says which ones are not formatted.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  "") action=(-i) ;;
  --check) action=(--dry-run --Werror) ;;
  *)
    echo "usage: tools/format.sh [--check]" >&2
    exit 2
    ;;
esac
if ! command -v clang-format >/dev/null; then
  echo "format: clang-format is not installed" >&2
  exit 1
fi
git ls-files -z -- '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format "${action[@]}" --style=file
