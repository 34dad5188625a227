#!/usr/bin/env bash
# Makes the Debian packages of a build folder, installs them into a root folder of their own, and runs
# the programs from there.
#   tests/packages/run.sh BUILD
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT

fail() {
  echo "tests/packages: $*" >&2
  exit 1
}

mapfile -t packages < <(tools/make_packages.sh "$1" "$root/dist")
[[ ${#packages[@]} -ge 3 ]] || fail "only ${#packages[@]} packages were made"
for package in "${packages[@]}"; do
  if [[ $EUID -eq 0 ]]; then
    mkdir -p "$root/var/lib/dpkg/"{info,updates,triggers}
    touch "$root/var/lib/dpkg/"{status,available}
    dpkg --root="$root" --force-depends --force-script-chrootless --install "$package" >/dev/null 2>&1 ||
      fail "dpkg could not install $package"
  else
    dpkg-deb --extract "$package" "$root"
  fi
  name="$(dpkg-deb --field "$package" Package)"
  size="$(dpkg-deb --field "$package" Installed-Size)"
  [[ "$name" == shardplan-doc || "$(dpkg-deb --field "$package" Depends)" == *libc6* ]] ||
    fail "$name names no library that it needs"
  echo "tests/packages: $name, $size KiB installed"
done

bin="$root/usr/bin" share="$root/usr/share"
answer="$("$bin/shardplan" fit llama-2-7b 4xA100-40GB)"
[[ "$answer" == FITS:* ]] || fail "shardplan gives no verdict: $answer"
"$bin/shardplan-validate" "$share/doc/shardplan-doc/configs/jobs/gpt2-tiny-native.json" --device host --dry-run \
  >/dev/null || fail "shardplan-validate ends with exit code $?"
if [[ -e "$bin/shardplan-gui" ]]; then
  "$bin/shardplan-gui" --version | grep -q "$("$bin/shardplan" --version)" || fail "another version in the window"
  [[ -s "$share/applications/shardplan.desktop" ]] || fail "no entry for the desktop's menu"
fi
for page in shardplan shardplan-fit shardplan-validate; do
  gzip -dcf "$share/man/man1/$page.1"* | grep -q '^\.SH' || fail "$page has no manual page"
done
for file in bash-completion/completions/shardplan zsh/vendor-completions/_shardplan \
  fish/vendor_completions.d/shardplan.fish; do
  [[ -s "$share/$file" ]] || fail "no $file"
done
bash -n "$share/bash-completion/completions/shardplan"
echo "tests/packages: ok"
