#!/usr/bin/env bash
# Builds the documentation site into build/site and fails on a broken link, a missing anchor, a page that
# the navigation leaves out, or a misspelt word. ctest runs it as Documents.BuildWithStrictLinks.
# MkDocs Material and codespell are installed into build/docs-venv, as tools/docs-requirements.txt pins them;
# where they cannot be had the exit code is 77, which ctest counts as skipped.
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly wanted=tools/docs-requirements.txt
readonly venv=build/docs-venv

fail() {
  echo "make_docs: $*" >&2
  exit 1
}

install_tools() {
  command -v python3 >/dev/null || fail "needs python3 with venv (Debian: python3-venv)"
  rm -rf "$venv"
  python3 -m venv "$venv" || fail "python3 could not make $venv (Debian: python3-venv)"
  if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: -r "$wanted"; then
    echo "make_docs: pip could not install the packages of $wanted: is a package index within reach?" >&2
    exit 77
  fi
  cp "$wanted" "$venv/installed.txt"
}

# The pages outside docs/ have links too; MkDocs does not read them.
check_links() {
  local page link
  for page in README.md HACKING.md CHANGELOG.md; do
    while IFS= read -r link; do
      [[ -e "$link" ]] || fail "$page: no such file: $link"
    done < <(grep -oE '\]\([^)#: ]+[)#]' "$page" | sed -e 's/^](//' -e 's/.$//' | sort -u)
  done
}

mkdir -p build
cmp -s "$wanted" "$venv/installed.txt" || install_tools
check_links
"$venv/bin/codespell" --ignore-words tools/docs-ignored-words.txt --skip '*.svg,*.png,ja,ko' \
  README.md HACKING.md CHANGELOG.md docs data/words/en core planner validator gui tools ||
  fail "misspelt words; add a word that is right to tools/docs-ignored-words.txt"
# Not --quiet: it hides warnings from --strict too.
NO_MKDOCS_2_WARNING=true "$venv/bin/mkdocs" build --strict ||
  fail "mkdocs found the problems above"
echo "make_docs: build/site"
