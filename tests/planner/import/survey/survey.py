"""How many of the trainers' public files `shardplan import` reads, by kind.

    python tests/planner/import/survey/survey.py FOLDER [--program PATH] [--kind KIND] [--rows FILE]

FOLDER has the trainers' repositories as `git clone URL FOLDER/OWNER+NAME` makes them; those that are absent are left out.
files.json says which of their files are of which kind (`holds`), which are another set's (`without`), and which count apart,
by what they hold and why (`apart`, of a kind or of a set): they train no language model, or nothing. A shell script that
starts no program (`runs`) is a part of another one, and counts apart too.

A file gets what it cannot say: GPUs (as many as it asks for, else the first count of GPU_COUNTS that its degrees divide), and
a model of about the right sort where the one that it names is not in the catalogue or it names none (`with a model`).
Outcomes:

    imported       exit code 0
    refused        exit code 3, and the message names file and key
    stops          the same, and the message says where the trainer itself stops: not counted among the files
    apart          not asked, for a reason of files.json
    wrong          everything else: a crash, another exit code, a message without a key, an answer later than --limit

Prints a table by kind and, for each kind, the refusals by frequency. --rows writes a line of JSON for each file.
"""

import argparse
import collections
import dataclasses
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import time

GPU_COUNTS = (8, 1, 2, 4, 16, 32, 64, 128, 12, 24, 48, 256, 512, 1024)
STAND_IN_MODELS = ("qwen3-8b", "qwen3-30b-a3b", "qwen2.5-vl-7b", "bert-base-uncased", "gpt2-xl", "bert-large-uncased")
NO_MODEL = re.compile(
    r"which model is trained is not in the file|is no model of the catalogue|is not in the arguments; expected --model"
    r"|layers are not in the arguments|layers are not known"
)
NO_BATCH = re.compile(r"neither said nor use_dynamic_bsz")
# Where the trainer itself would stop, as the message says.
STOPS = re.compile(r"\bstops\b")
# What the stand-in of another sort would answer.
MISMATCH = re.compile(r"a dense model has no experts|no module of this model|tokens have no room for")


@dataclasses.dataclass
class Answer:
    code: int
    message: str
    seconds: float


@dataclasses.dataclass
class Outcome:
    kind: str
    file: str
    outcome: str
    stand_in: bool
    message: str
    seconds: float
    recognised: str = ""


class Survey:
    def __init__(self, program: pathlib.Path, limit: float):
        self.program, self.limit = program, limit

    def ask(self, root: pathlib.Path, command: str, file: str, *flags: str) -> Answer:
        start = time.perf_counter()
        done = subprocess.run([self.program, command, file, *flags], cwd=root, capture_output=True, text=True,
                              errors="replace", timeout=60)
        seconds = time.perf_counter() - start
        lines = done.stderr.strip().splitlines()
        of_program = [line for line in lines if line.startswith("shardplan: ")]
        message = "\n".join(of_program or lines[-3:]) if done.returncode else "\n".join(lines[:1])
        return Answer(done.returncode, message, seconds)

    def clusters(self, first: Answer):
        asked = re.search(r"ask for (\d+) GPU", first.message)
        counts = [int(asked[1])] if asked else []
        counts += [count for count in GPU_COUNTS if not counts or count > counts[0]]
        for count in counts:
            yield f"{count}xH100-80GB" if count <= 8 or count % 8 else f"{count // 8}x8xH100-80GB"

    def with_answers(self, root: pathlib.Path, file: str, cluster: str) -> tuple[Answer, bool]:
        """With what the file lacks beside GPUs, and whether a model was given."""
        flags = ["--cluster", cluster]
        answer = self.ask(root, "import", file, *flags)
        if NO_BATCH.search(answer.message):
            flags += ["--micro-batch", "1"]
            answer = self.ask(root, "import", file, *flags)
        if answer.code != 3 or not NO_MODEL.search(answer.message):
            return answer, False
        refused = []
        for model in STAND_IN_MODELS:
            answer = self.ask(root, "import", file, *flags, "--model", model)
            if answer.code != 3:
                return answer, True
            refused.append(answer)
        fitting = [r for r in refused if not MISMATCH.search(r.message)]
        return (fitting or refused)[0], True

    def best(self, root: pathlib.Path, file: str) -> tuple[Answer, bool]:
        """The first answer that is none of a wrong count of GPUs."""
        first = self.ask(root, "import", file)
        if first.code not in (0, 3):
            return first, False
        shown = None
        for cluster in self.clusters(first):
            answer, given = self.with_answers(root, file, cluster)
            if answer.code != 3:
                return answer, given
            shown = shown or (answer, given)
            if not re.search(r"rank|GPU|divide|degree|world|micro-batches", answer.message):
                break
        return shown

    def outcome(self, kind: str, root: pathlib.Path, file: str) -> Outcome:
        answer, given = self.best(root, file)
        message = answer.message.removeprefix("shardplan: ")
        if answer.seconds > self.limit:
            word = "wrong"
            message = f"an answer after {answer.seconds * 1e3:.0f} ms"
        elif answer.code == 0:
            word = "imported"
        elif answer.code == 3 and re.match(r"[^:]+: (line \d+[^:]*: )?[^:]+: ", message):
            word = "stops" if STOPS.search(message) else "refused"
        else:
            word = "wrong"
        return Outcome(kind, f"{root.name}/{file}", word, given, message, answer.seconds)


def why_apart(entry: dict, of_kind: list, name: str, text: str) -> str:
    """Why a file counts apart from its kind; empty where it does not. Rules are [pattern, reason]."""
    for pattern, why in entry.get("apart", []) + of_kind:
        if re.search(pattern, text, re.M):
            return why
    part = name.endswith(".sh") and "runs" in entry and not re.search(entry["runs"], text)
    return "a part of a script, which starts no program" if part else ""


def chosen(folder: pathlib.Path, sets: list[dict], apart: dict[str, list]):
    """(kind, repository's folder, file in it, why it counts apart) of each file, each once."""
    seen = set()
    for entry in sets:
        holds = re.compile(entry["holds"], re.M)
        leaves = re.compile(entry.get("without", r"\Z\A."), re.M)
        for path in sorted(folder.glob(f"{entry['repository'].replace('/', '+')}/**/*")):
            root = folder / path.relative_to(folder).parts[0]
            name = str(path.relative_to(root))
            if path in seen or not path.is_file() or not any(fnmatch.fnmatch(name, g) for g in entry["files"]):
                continue
            text = path.read_text(errors="replace")
            if not holds.search(text) or leaves.search(text):
                continue
            seen.add(path)
            yield entry["kind"], root, name, why_apart(entry, apart.get(entry["kind"], []), name, text)


def reason(message: str) -> str:
    """A refusal without its file, place and numbers."""
    rest = re.sub(r"^[^:]+: (line \d+[^:]*: )?", "", message.splitlines()[0] if message else "")
    return re.sub(r"\d+", "N", rest)[:150]


def show(outcomes: list[Outcome], most: int) -> None:
    by_kind = collections.defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.kind].append(outcome)
    print(f"{'kind':20}{'files':>7}{'imported':>10}{'%':>6}{'with a model':>14}{'refused':>9}{'wrong':>7}{'stops':>7}{'apart':>7}"
          f"{'slowest ms':>12}")
    for kind, all_of_it in sorted(by_kind.items()):
        count = collections.Counter(o.outcome for o in all_of_it)
        asked = len(all_of_it) - count["apart"] - count["stops"]
        given = sum(o.stand_in and o.outcome == "imported" for o in all_of_it)
        share = 100 * count["imported"] / max(asked, 1)
        slowest = max(o.seconds for o in all_of_it) * 1e3
        print(f"{kind:20}{asked:7}{count['imported']:10}{share:6.1f}{given:14}{count['refused']:9}{count['wrong']:7}"
              f"{count['stops']:7}{count['apart']:7}{slowest:12.0f}")
    for kind, all_of_it in sorted(by_kind.items()):
        reasons = collections.Counter((o.outcome, reason(o.message)) for o in all_of_it if o.outcome != "imported")
        if reasons:
            print(f"\n{kind}")
        for (word, text), count in reasons.most_common(most):
            print(f"  {count:4} {word:8} {text}")
    print("\nslowest")
    for o in sorted(outcomes, key=lambda o: -o.seconds)[:10]:
        print(f"  {o.seconds * 1e3:6.0f} ms {o.file}")


def main() -> None:
    here = pathlib.Path(__file__).resolve()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--program", type=pathlib.Path, default=here.parents[4] / "build/dev/planner/shardplan")
    arguments.add_argument("--kind", action="append", help="this kind alone")
    arguments.add_argument("--limit", type=float, default=1.0, help="seconds that an answer may take")
    arguments.add_argument("--most", type=int, default=40, help="refusals shown of a kind")
    arguments.add_argument("--rows", type=pathlib.Path, help="write a line of JSON for each file")
    a = arguments.parse_args()
    survey = Survey(a.program.resolve(), a.limit)
    files = json.loads((here.parent / "files.json").read_text())
    outcomes = []
    if a.rows:
        a.rows.unlink(missing_ok=True)
    for kind, root, name, apart in chosen(a.folder, files["sets"], files["apart"]):
        if a.kind and kind not in a.kind:
            continue
        outcomes.append(Outcome(kind, f"{root.name}/{name}", "apart", False, f"{name}: {apart}", 0.0) if apart
                        else survey.outcome(kind, root, name))
        if a.rows:
            with a.rows.open("a") as rows:
                rows.write(json.dumps(dataclasses.asdict(outcomes[-1])) + "\n")
    if not outcomes:
        sys.exit(f"{a.folder}: no folder of files.json's repositories, such as axolotl-ai-cloud+axolotl")
    show(outcomes, a.most)


if __name__ == "__main__":
    main()
