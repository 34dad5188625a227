"""Which commit added each measurement and which predicted it first, by the history of this repository.

    python cases_and_records/make_provenance.py            # writes data/measurements/provenance.json
    python cases_and_records/make_provenance.py --check    # says whether the file is what the history says
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
MEASUREMENTS = ROOT / "data/measurements"
PREDICTIONS = "tests/accuracy/measure/predictions"
OTHERS = {"provenance.json", "split.json"}
NOTE = ("From the history, by make_provenance.py. added: the commit that added the file, which "
        "is not the commit that was run. predicted: the commit that first held a prediction of the run, before its "
        "record was added. beside: the first kept prediction is in the record's own commit or in one of a later time, "
        "so that the history does not say which came first. none: no prediction of it is in the history. rates, links "
        "and losses are measurements of parts, which nothing predicts.")


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def added_files():
    """For each file's name without its folders, the oldest commit that added it, and when: files were moved."""
    found, commit = {}, None
    log = git("log", "--no-renames", "--diff-filter=A", "--name-only", "--format=@%H %ct", "--", "data/measurements")
    for line in log.splitlines():
        if line.startswith("@"):
            commit, seconds = line[1:].split()
        elif line:
            found[pathlib.Path(line).name] = (commit, int(seconds))
    return found


def names_in(text):
    content = json.loads(text)
    return content if isinstance(content, dict) else [case["name"] for case in content]


def first_predictions():
    """For each run's name the commit that first held a prediction of it, and when."""
    first = {}
    for path in sorted((ROOT / PREDICTIONS).glob("*.json")):
        file = str(path.relative_to(ROOT))
        for line in git("log", "--no-renames", "--format=%H %ct", "--", file).splitlines():
            commit, seconds = line.split()
            try:
                names = names_in(git("show", f"{commit}:{file}"))
            except subprocess.CalledProcessError:  # it was deleted there
                continue
            for name in names:
                if name not in first or int(seconds) < first[name][1]:
                    first[name] = (commit, int(seconds))
    return first


def first_of(name, predictions):
    """Of a run, or of the loads that an engine was given, whose names begin with the engine's."""
    found = [first for other, first in predictions.items() if other == name or other.startswith(name + "-b")]
    return min(found, key=lambda first: first[1], default=None)


def runs_of(path):
    """The names of the runs that a file records; none where it records parts."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if path.parts[len(MEASUREMENTS.parts)] in ("training", "inference", "rlhf"):
        return [path.stem]
    return [row["name"] for key in ("rows", "cases") for row in content.get(key, []) if "job" in row]


def provenance():
    files, predicted_first = added_files(), first_predictions()
    result = {"schema": "shardplan.provenance/1", "note": NOTE, "added": {}, "predicted": {}, "beside": {}, "none": []}
    for path in sorted(MEASUREMENTS.rglob("*.json")):
        if path.name in OTHERS:
            continue
        commit, added = files[path.name]
        result["added"].setdefault(commit, []).append(str(path.relative_to(MEASUREMENTS))[:-len(".json")])
        for name in runs_of(path):
            first = predicted_first.get(name) or first_of(name, predicted_first)
            if first is None:
                result["none"].append(name)
                continue
            at, when = first
            result["predicted" if when < added else "beside"].setdefault(at, []).append(name)
    for group in ("added", "predicted", "beside"):
        result[group] = {commit: sorted(set(result[group][commit])) for commit in sorted(result[group])}
    result["none"] = sorted(set(result["none"]))
    return result


if __name__ == "__main__":
    file = MEASUREMENTS / "provenance.json"
    text = json.dumps(provenance(), indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if file.read_text(encoding="utf-8") == text else f"{file} is not what the history says")
    file.write_text(text, encoding="utf-8")
