#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing. Asks nothing; does nothing
# when all are there.
#   tools/install_packages.sh [PURPOSE...]     build, cuda, tests, python, debian, window, window-tests;
#                                              default: all of them
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A compiler, CMake or Ninja from elsewhere is as good as the package.
is_installed() {
  case "$1" in
    g++ | cmake) command -v "$1" >/dev/null && return ;;
    ninja-build) command -v ninja >/dev/null && return ;;
  esac
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]]
}

# Prints the packages of one purpose, or of all ("").
packages_for() {
  sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' tools/packages.txt |
    awk -v purpose="[$1]" '/^\[/ {ours = (purpose == "[]" || $0 == purpose); next} ours'
}

wanted=()
for purpose in "${@:-}"; do
  mapfile -t packages < <(packages_for "$purpose")
  if [[ ${#packages[@]} -eq 0 ]]; then
    echo "install_packages: tools/packages.txt has no purpose '$purpose', but" \
      "$(sed -n 's/^\[\(.*\)\].*/\1/p' tools/packages.txt | paste -sd ' ')" >&2
    exit 2
  fi
  wanted+=("${packages[@]}")
done
mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | awk '!seen[$0]++')

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: not a Debian system; install what corresponds to: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! sudo -n true 2>/dev/null; then
    echo "install_packages: missing: ${missing[*]}" >&2
    echo "install_packages: neither root nor sudo without a password; run this and try again:" >&2
    echo "  sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

echo "install_packages: installing ${missing[*]}" >&2
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" >>"$log" 2>&1
}
# The lists may be stale in one repository and good in another: what counts is the installation.
apt -q update || true
if ! apt -q -y --no-install-recommends install "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "install_packages: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
