#!/usr/bin/env bash
# Runs the commands that the documents show and says which lines of their outputs are out of date:
#   tools/check_docs.sh [--update] [PROGRAM]     default: the dev build's
# --update puts the likeliest line of the output in place of each; look at the difference before you commit.
#
# In a block of ``` a line "$ shardplan ..." is a command, to the end of its "\" continuations. Every other
# line must be part of its output, blanks apart; "..." stands for lines left out. A block that begins with
# ```json title="NAME" is a file that later commands of the page may read. What commands write goes to a
# folder of their own.
set -euo pipefail

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
import difflib, os, pathlib, re, shlex, subprocess, sys, tempfile

program, update = sys.argv[1], sys.argv[2] == "true"
root = pathlib.Path.cwd()


def squeezed(text):
    return " ".join(text.split())


def output_of(command, folder):
    arguments = shlex.split(command)[2:]
    run = subprocess.run([program, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if run.returncode == 2:
        sys.exit(f"check_docs: {command}: {run.stdout.decode()}")
    return run.stdout.decode()


def likeliest(line, output):
    candidates = [c.rstrip() for c in output.splitlines() if c.strip()]
    best = difflib.get_close_matches(line.strip(), [c.strip() for c in candidates], 1, 0.5)
    return line[: len(line) - len(line.lstrip())] + best[0] if best else line


def check(page, folder):
    """The page's lines, as they would be if all were right, and which are not."""
    lines, stale = [], []
    inside, name, content, command, output = False, None, [], "", ""
    for line in page.read_text().split("\n"):
        fixed = line
        if line.startswith("```"):
            if name:
                (folder / name).write_text("\n".join(content) + "\n")
            title = re.search(r'title="([^"]+)"', line)
            inside, name, content = not inside, title and title[1], []
            command = output = ""
        elif inside and name:
            content.append(line)
        elif inside and (line.startswith("$ shardplan ") or command):
            command += " " + line.rstrip("\\")
            if not line.endswith("\\"):
                output, command = output_of(command, folder), ""
        elif inside and output and line.strip() not in ("", "..."):
            if squeezed(line) not in squeezed(output):
                stale.append(line)
                fixed = likeliest(line, output)
        lines.append(fixed)
    return lines, stale


pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
count = 0
for page in pages:
    with tempfile.TemporaryDirectory() as folder:
        for entry in ("configs", "data", "tests"):
            os.symlink(root / entry, os.path.join(folder, entry))
        lines, stale = check(page, pathlib.Path(folder))
    for line in stale:
        print(f"{page.relative_to(root)}: not in the output any more: {line}", file=sys.stderr)
    if stale and update:
        page.write_text("\n".join(lines))
    count += len(stale)
print(f"check_docs: {count} lines {'replaced' if update else 'out of date'}")
sys.exit(count > 0 and not update)
PYTHON
