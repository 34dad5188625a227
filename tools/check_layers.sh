#!/usr/bin/env bash
# What the targets cannot enforce: who may include whom, how long a file and a function may be, and
# that nothing names a folder of somebody's machine. Run by ctest as "layering".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
failures=0

files() { # files PATHSPEC...: tracked ones, or all of an unpacked archive
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@"
  else
    find . -path ./build -prune -o -type f -print | sed 's|^\./||'
  fi
}

# forbid WHAT REGEX: fails for each line of the files on stdin that matches.
forbid() {
  local hits
  hits="$(xargs -r -d '\n' grep -HnE -- "$2" || true)"
  [[ -z "$hits" ]] && return
  printf '%s:\n%s\n' "$1" "$hits" >&2
  failures=$((failures + 1))
}

sources_below() { files "$1" | grep -E "^$1/.*\.(h|cpp|cu|cuh)$" || true; }

# Folders of a layer, as they begin an include: (questions|render|cli)
folders_of() {
  { find "$1" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' 2>/dev/null || true; } |
    grep -v '^io$' | sort | paste -sd '|'
}

outside_io() { sources_below core | grep -v '^core/io/' || true; }
forbid "core includes JSON, CUDA, Qt, threads or clocks" \
  '#include *<(nlohmann/|cuda|nccl|Q[A-Z]|thread>|chrono>)' < <(outside_io)
forbid "core includes its JSON layer" \
  "#include *\"(io|$(folders_of core/io))/" < <(outside_io)
forbid "only the windows include Qt" '#include *<Q[A-Z]' < <(sources_below planner)
forbid "the windows' models include widgets" \
  '#include *(<Q(Widget|Application|Painter|Label|Dialog)|"(views|wizard)/)' < <(sources_below gui/models)
forbid "views include pages" '#include *"wizard/' < <(sources_below gui/views)

# Users of the library have these headers and the standard library, and no others.
foreign_includes='^[[:space:]]*#[[:space:]]*include[[:space:]]*(<[^>]*[./][^>]*>|"([^s]|s[^h]|shardplan[^/]))'
forbid "public headers include more than the standard library and each other" \
  "$foreign_includes" < <(sources_below api/include)

# crossings FROM TO: includes in FROM of a header that TO has and neither FROM nor core. Both may have
# folders of the same name.
crossings() {
  local line header
  { sources_below "$1" | xargs -r -d '\n' grep -HnE '#include *"' || true; } |
    while IFS= read -r line; do
      [[ "$line" =~ \"([^\"]+)\" ]] || continue
      header="${BASH_REMATCH[1]}"
      if [[ "$header" == "$2"/* ]]; then
        echo "$line"
      elif [[ -f "$2/$header" && ! -f "$1/$header" && ! -f "core/$header" &&
        ! -f "core/io/$header" ]]; then
        echo "$line"
      fi
    done
}
for pair in "core planner" "planner validator" "validator planner"; do
  read -r from to <<<"$pair"
  hits="$(crossings "$from" "$to")"
  [[ -z "$hits" ]] && continue
  printf 'the %s includes the %s:\n%s\n' "$from" "$to" "$hits" >&2
  failures=$((failures + 1))
done

# The validator's folders from the ground up: each with the folders that it may include, all above
# it in the table, so that no two include each other.
validator_rooms='
memory
device       memory
storage      memory device
model        memory device
engine       memory device storage model
kernels      memory device
comm         memory device kernels
job          storage model engine
data         device model engine
checkpoint   memory device storage model engine job data
launch       memory device storage engine kernels comm job data checkpoint
record       checkpoint launch
host_check memory device engine kernels
kernel_check memory device model engine kernels comm
cli          memory device storage engine kernels comm job checkpoint launch record
'
known=' '
while read -r room allowed; do
  [[ -z "$room" ]] && continue
  for other in $allowed; do
    [[ "$known" == *" $other "* ]] && continue
    echo "check_layers: validator/$room may not rest on $other, which is not above it" >&2
    failures=$((failures + 1))
  done
  known+="$room "
  while IFS= read -r line; do
    [[ "$line" =~ \"([^\"]+)\" ]] || continue
    header="${BASH_REMATCH[1]}"
    [[ -f "validator/$header" ]] || continue
    [[ " $room $allowed " == *" ${header%%/*} "* ]] && continue
    echo "validator/$room may not include ${header%%/*}: $line" >&2
    failures=$((failures + 1))
  done < <(sources_below "validator/$room" | xargs -r -d '\n' grep -HnE '#include *"' || true)
done <<<"$validator_rooms"
while IFS= read -r room; do
  [[ "$known" == *" $room "* ]] && continue
  echo "check_layers: validator/$room has no row in the table of the validator's folders" >&2
  failures=$((failures + 1))
done < <(sources_below validator | cut -d/ -f2 | sort -u)

# What varies between frameworks is a trait that code asks for (core/frameworks/traits.h,
# planner/frameworks/planning.h); only a framework's own files and the registries name one.
forbid "a framework is named outside its own files" 'FrameworkKind::' \
  < <(for layer in core planner gui validator api; do sources_below "$layer"; done |
    grep -vE '^(core|planner)/frameworks/')

while IFS= read -r file; do
  lines="$(wc -l <"$file")"
  if [[ $lines -gt 500 ]]; then
    echo "$file has $lines lines; 500 are the most" >&2
    failures=$((failures + 1))
  fi
done < <(files | grep -E '\.(h|cpp|cu|cuh|py|sh|cmake)$|CMakeLists\.txt$')

# long_functions: functions of more than 60 lines, a screen. clang-format closes a function at the
# indentation where it begins: 0, or 2 within a class. CUDA kernels are one function each for the
# compiler's sake and stay whole.
long_functions() {
  files | grep -E '^(core|planner|validator|gui|api)/.*\.(h|cpp)$' | xargs -r -d '\n' awk -v most=60 '
    FNR == 1 { start[0] = start[2] = 0 }
    match($0, /^ */) && (RLENGTH == 0 || RLENGTH == 2) {
      rest = substr($0, RLENGTH + 1)
      if (rest == "}" && FNR - start[RLENGTH] + 1 > most)
        printf "%s:%d: %d lines\n", FILENAME, start[RLENGTH], FNR - start[RLENGTH] + 1
      else if (rest ~ /^[A-Za-z_~\[]/) start[RLENGTH] = FNR
    }'
}
hits="$(long_functions)"
if [[ -n "$hits" ]]; then
  printf 'functions of more than 60 lines:\n%s\n' "$hits" >&2
  failures=$((failures + 1))
fi

forbid "a folder of somebody's machine" \
  '(^|[^[:alnum:]_.:/-])/(home|Users|root|work)/[[:alnum:]_]' < <(files)

if [[ $failures -gt 0 ]]; then
  echo "check_layers: $failures rules broken" >&2
  exit 1
fi
echo "check_layers: ok"
