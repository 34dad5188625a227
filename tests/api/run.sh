#!/usr/bin/env bash
# The library as others have it: installs component dev of a build folder, builds the example
# against it, runs it. The library shows nothing but its own interface.
#   tests/api/run.sh BUILD
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() {
  echo "tests/api: $*" >&2
  exit 1
}

cmake --install "$build" --component dev --prefix "$work/usr" --strip >/dev/null
cmake -S examples/cpp -B "$work/build" -D CMAKE_PREFIX_PATH="$work/usr" \
  -D CMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -D CMAKE_CXX_STANDARD=17 >/dev/null
cmake --build "$work/build" >/dev/null
example="$work/build/will_it_fit"

answer="$("$example" gpt2 1xA100-40GB)" || fail "exit code $? for a job that fits"
[[ "$answer" == "fits: "*$'\n'"largest part: "* ]] || fail "another answer: $answer"
code=0
answer="$("$example" llama-2-7b 2xA100-40GB)" || code=$?
[[ $code -eq 1 && "$answer" == "does not fit: "*$'\n'"try: "* ]] ||
  fail "exit code $code and another answer for a job that does not fit: $answer"
code=0
error="$("$example" llama-2-7 4xA100-40GB 2>&1)" || code=$?
[[ $code -eq 2 && "$error" == *"nearest: llama-2-7b"* ]] || fail "exit code $code and another error: $error"

library="$(find "$work/usr" -name libshardplan.so)"
[[ "$(readelf --dynamic "$library")" == *"[libshardplan.so.0]"* ]] || fail "no soname libshardplan.so.0"
shown="$(nm --dynamic --defined-only --demangle "$library" | cut -d' ' -f3-)"
foreign="$(grep -vE '^((typeinfo|typeinfo name|vtable) for )?shardplan::api::' <<<"$shown" || true)"
[[ -z "$foreign" ]] || fail "the library shows more than its interface: $foreign"
needed="$(readelf --dynamic "$library" | grep NEEDED)"
foreign="$(grep -vE '\[(libstdc\+\+|libm|libgcc_s|libc|ld-linux[^]]*)\.so' <<<"$needed" || true)"
[[ -z "$foreign" ]] || fail "the library needs others: $foreign"
echo "tests/api: ok"
