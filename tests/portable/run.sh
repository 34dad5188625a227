#!/usr/bin/env bash
# The program of the portable tar runs with nothing around it: no libraries, files, folders or
# environment. Linked from the libraries of a build folder, or a tar that is there:
#   tests/portable/run.sh BUILD|TAR
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
subject="$1"
if [[ -d "$subject" ]]; then
  subject="$(tools/make_portable.sh --linked "$subject" build/dist-linked)"
fi

empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
tar --extract --gzip --file "$subject" --directory "$empty" --strip-components=1 --wildcards '*/shardplan'
cd "$empty"

fail() {
  echo "tests/portable: $*" >&2
  exit 1
}
[[ "$(ls)" == shardplan ]] || fail "the tar has something else in the program's place"
linked="$(LC_ALL=C ldd ./shardplan 2>&1 || true)"
[[ "$linked" == *"not a dynamic executable"* || "$linked" == *"statically linked"* ]] ||
  fail "ldd finds libraries: $linked"

question=(fit llama-2-7b 4xA100-40GB)
answer="$(env --ignore-environment ./shardplan "${question[@]}")"
[[ "$answer" == FITS:* ]] || fail "no verdict without an environment: $answer"

# A root folder that holds the program alone, where this is allowed.
alone=(unshare --user --map-root-user chroot .)
[[ $EUID -eq 0 ]] && alone=(chroot .)
if "${alone[@]}" /shardplan --version >/dev/null 2>&1; then
  [[ "$("${alone[@]}" /shardplan "${question[@]}")" == "$answer" ]] ||
    fail "another answer where there is no other file"
  # Threads, too: glibc must find all that they need in the program.
  "${alone[@]}" /shardplan search --model gpt2 --cluster 2xA100-40GB --zero-stages 2,3 --threads 2 \
    >/dev/null || fail "a search with threads ends with exit code $?"
  "${alone[@]}" /shardplan fit gpt2 /absent.json >/dev/null 2>&1 && fail "takes a file that is not there"
  [[ $("${alone[@]}" /shardplan fit no-model 1xA100 2>&1 || true) == *"no model of the catalogue"* ]] ||
    fail "errors are not told"
else
  echo "tests/portable: not tried in a root folder of its own: chroot is not allowed here"
fi
echo "tests/portable: ok"
