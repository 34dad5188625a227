#!/usr/bin/env bash
# Runs the commands that the documents show and says which lines of their outputs are out of date:
#   tools/check_docs.sh [--update] [PROGRAM]     default: the dev build's
# --update puts the likeliest line of the output in place of each; look at the difference before you commit.
#
# In a block of ``` a line "$ shardplan ..." is a command, to the end of its "\" continuations. Every other
# line must be part of its output, blanks apart; "..." stands for lines left out. On a page with the comment
# <!-- whole outputs --> nothing may be left out. A block that begins with ```json title="NAME" is a file that
# later commands of the page may read. What commands write goes to a folder of their own.
#
# A command's page begins with an example of it. Figures with a unit of the program's (GiB, ms, tokens/s, ...)
# in the text of a page with commands must be in what one of them prints. Those from elsewhere are named:
# <!-- figures from elsewhere: 12 GiB, 3.5 ms -->
set -euo pipefail
export LC_ALL=C.UTF-8  # the program writes ASCII where the locale has no more

cd "$(dirname "${BASH_SOURCE[0]}")/.."
update=false
if [[ "${1:-}" == --update ]]; then
  update=true
  shift
fi
program="$(realpath -m "${1:-build/dev/planner/shardplan}")"
if [[ ! -x "$program" ]]; then
  echo "check_docs: no program at $program" >&2
  exit 2
fi
python3 - "$program" "$update" <<'PYTHON'
import concurrent.futures, difflib, os, pathlib, re, shlex, subprocess, sys, tempfile

program, update = sys.argv[1], sys.argv[2] == "true"
root = pathlib.Path.cwd()


def squeezed(text):
    return " ".join(text.split())


def output_of(command, folder):
    arguments = shlex.split(command)[2:]
    run = subprocess.run([program, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if run.returncode == 2:
        raise RuntimeError(f"check_docs: {command}: {run.stdout.decode()}")
    return run.stdout.decode()


def begins_like(line, other):
    """Rows of one table: the names in front of the first figure are the same."""
    return re.split(r"\d|  ", line.strip())[0] == re.split(r"\d|  ", other.strip())[0]


def likeliest(line, output, shown):
    """The line of the output that takes this one's place: none that is shown already."""
    free = [c.strip() for c in output.splitlines() if c.strip() and squeezed(c) not in shown]
    named = [c for c in free if begins_like(line, c)]
    best = difflib.get_close_matches(line.strip(), named or free, 1, 0.5)
    return line[: len(line) - len(line.lstrip())] + best[0] if best else line


def checked(shown, output, whole):
    """The lines shown below a command, as they would be if all were right, and which are not."""
    if whole:
        right = [line.rstrip() for line in output.splitlines()]
        return (shown, []) if squeezed("\n".join(shown)) == squeezed(output) else (right, ["(whole output)"])
    stale = [line for line in shown
             if line.strip() not in ("", "...") and squeezed(line) not in squeezed(output)]
    right, taken = [], {squeezed(line) for line in shown}
    for line in shown:
        right.append(likeliest(line, output, taken) if line in stale else line)
        taken.add(squeezed(right[-1]))
    return right, stale


UNITS = r"(?:[KMGT]iB|tokens/s|ms|GPU-hours|days)"
FIGURE = re.compile(r"(?<![\w.,-])\d[\d.,]*(?<=\d) " + UNITS + r"(?![\w/])")


def unfounded_figures(text, outputs):
    """The figures in a page's text that no command of the page prints."""
    if not outputs:
        return []
    elsewhere = set(FIGURE.findall(" ".join(re.findall(r"<!-- figures from elsewhere(.*?)-->", text, re.S))))
    prose = re.sub(r"```.*?```|<!--.*?-->|`[^`]*`", " ", text, flags=re.S)
    printed = set(FIGURE.findall(squeezed(" ".join(outputs))))
    return sorted(set(FIGURE.findall(squeezed(prose))) - printed - elsewhere)


def begins_with_an_example(page):
    """Of a command's page: the first block runs that command."""
    first = re.search(r"^```\n(.*)", page.read_text(encoding="utf-8"), re.M)
    return first is not None and f"{first[1]} ".startswith(f"$ shardplan {page.stem} ")


def check(page, folder):
    """The page's lines, as they would be if all were right; which are not; and figures of unknown origin."""
    text = page.read_text(encoding="utf-8")
    outputs = []
    whole = "<!-- whole outputs -->" in text
    lines, stale, shown = [], [], []
    inside, name, command, output = False, None, "", None

    def end_of_output():
        nonlocal shown, output
        if output is not None:
            right, wrong = checked(shown, output, whole)
            lines.extend(right)
            stale.extend(wrong)
        shown, output = [], None

    for line in text.split("\n"):
        if line.startswith("```"):
            end_of_output()
            if name:
                (folder / name).write_text("\n".join(shown_file) + "\n", encoding="utf-8")
            title = re.search(r'title="([^"]+)"', line)
            inside, name, shown_file, command = not inside, title and title[1], [], ""
        elif name:
            shown_file.append(line)
        elif inside and (line.startswith("$ shardplan ") or command):
            end_of_output()
            command += " " + line.rstrip("\\")
            if not line.endswith("\\"):
                output, command = output_of(command, folder), ""
                outputs.append(output)
        elif output is not None:
            shown.append(line)
            continue
        lines.append(line)
    return lines, stale, unfounded_figures(text, outputs)


def check_alone(page):
    """The same in a folder of the page's own, so that several can be checked at a time."""
    with tempfile.TemporaryDirectory() as folder:
        for entry in ("configs", "data", "tests"):
            os.symlink(root / entry, os.path.join(folder, entry))
        return check(page, pathlib.Path(folder))


pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
    try:
        checked_pages = list(workers.map(check_alone, pages))
    except RuntimeError as error:
        sys.exit(str(error))
count = others = 0
for page, (lines, stale, unfounded) in zip(pages, checked_pages):
    faults = [f"no command of the page prints it: {figure}" for figure in unfounded]
    if page.parent.name == "commands" and not begins_with_an_example(page):
        faults.append(f"does not begin with an example of {page.stem}")
    for fault in [f"not in the output any more: {line}" for line in stale] + faults:
        print(f"{page.relative_to(root)}: {fault}", file=sys.stderr)
    if stale and update:
        page.write_text("\n".join(lines), encoding="utf-8")
    count += len(stale)
    others += len(faults)
print(f"check_docs: {count} lines {'replaced' if update else 'out of date'}, {others} other faults")
sys.exit(others > 0 or (count > 0 and not update))
PYTHON
