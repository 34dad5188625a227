#!/usr/bin/env bash
# Puts cudnn-frontend's headers (header-only, MIT) under build/cudnn-frontend, where CMake looks for
# them: the validator's attention then runs on cuDNN. They come out of the wheel that NVIDIA
# publishes; nothing of it is installed. Debian has them as libcudnn-frontend-dev from trixie on.
# CMake calls this where it finds cuDNN without them (SHARDPLAN_FETCH_CUDNN_FRONTEND).
set -euo pipefail

readonly version=1.32.0

cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=build/cudnn-frontend
if [[ "$(cat "$target/version" 2>/dev/null || true)" == "$version" ]]; then
  exit 0
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
  if ! python3 -m venv "$work/venv" >/dev/null 2>&1; then
    echo "install_cudnn_frontend: needs python3 with pip or venv (Debian: python3-venv), to download the" \
      "headers" >&2
    exit 1
  fi
  python="$work/venv/bin/python3"
fi
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --retries 1 --timeout 15 --dest "$work" "nvidia-cudnn-frontend==$version"; then
  echo "install_cudnn_frontend: could not download nvidia-cudnn-frontend $version" >&2
  exit 1
fi
python3 - "$work" <<'PYTHON'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    wheel.extractall(work, [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
mkdir -p "$target"
rm -rf "$target/include"
mv "$work/include" "$target/include"
echo "$version" >"$target/version"
echo "install_cudnn_frontend: $version in $target" >&2
