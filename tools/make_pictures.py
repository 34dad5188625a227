#!/usr/bin/env python3
"""Makes the pictures of the documents from what the program writes:
    tools/make_pictures.py [PROGRAM]     default: the dev build's
docs/img/stages.svg is the chart of ZeRO stages in a report; accuracy.svg and accuracy-models.svg show the
errors of `shardplan accuracy`, one dot per record, by framework and by family of models."""
import collections
import csv
import io
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/img"
NAMES = {"parameters": "parameters", "gradients": "gradients", "master_parameters": "master parameters",
         "optimizer_states": "optimizer states", "activations": "activations",
         "workspace": "workspace", "fragmentation": "fragmentation", "nccl": "NCCL"}


def answer(program, *arguments):
    return subprocess.run([program, *arguments], cwd=ROOT, check=True, capture_output=True).stdout.decode()


def svg(width, height, style, body):
    return (f'<svg viewBox="-12 -8 {width + 24} {height + 16}" xmlns="http://www.w3.org/2000/svg"\n'
            f' width="{width + 24}" height="{height + 16}" font-family="system-ui, sans-serif">\n<style>\n'
            f'{style}\n</style>\n<rect x="-12" y="-8" width="{width + 24}" height="{height + 16}"'
            f' style="fill: var(--page)"/>\n{body}\n</svg>\n')


def report_style(page):
    """The report's colours, and its rules for what charts are drawn with."""
    text = page[page.index("<style>") + 7:page.index("</style>")]
    colours = re.search(r":root \{.*?\n\}", text, re.S)[0]
    rules = re.findall(r"^(?:svg [^ {}\n][^{}\n]*|\.c-[^{}\n]*)\{[^{}]*\}", text, re.M)
    return colours + "\n" + "\n".join(rules)


def legend(categories, y):
    parts, x = [], 0
    for name in categories:
        if x + 16 + 7 * len(NAMES[name]) > 760:
            x, y = 0, y + 18
        parts.append(f'<rect class="part c-{name}" x="{x}" y="{y}" width="12" height="12"/>'
                     f'<text class="note" x="{x + 16}" y="{y + 10}">{NAMES[name]}</text>')
        x += 30 + 7 * len(NAMES[name])
    return "\n".join(parts)


def stages(program):
    page = answer(program, "report", "configs/jobs/llama-2-7b-zero3.json", "--format", "html")
    chart = next(c for c in re.findall(r"<svg.*?</svg>", page, re.S) if "caption-stages" in c)
    height = int(re.search(r'viewBox="0 0 760 (\d+)"', chart)[1])
    body = re.sub(r"^<svg[^>]*>|</svg>$|<desc.*?</desc>", "", chart)
    shown = [name for name in NAMES if f"c-{name}" in chart]
    return svg(760, height + 42, report_style(page), body + legend(shown, height + 12))


def accuracy(program, group):
    """Errors of every record, a row per value of `group`: "framework" or "model"."""
    page = answer(program, "report", "configs/jobs/llama-2-7b-zero3.json", "--format", "html")
    rows = csv.DictReader(io.StringIO(answer(program, "accuracy", "--format", "csv")))
    panels = [("device", "memory taken from the GPU", 4), ("step_seconds", "time per step", 20)]
    errors = {figure: collections.defaultdict(list) for figure, *_ in panels}
    for row in rows:
        if row["figure"] in errors:
            errors[row["figure"]][row[group]].append(100 * float(row["error"]))
    families = sorted(errors["device"])
    left, width, row_height, top = 130, 290, 26, 34
    bottom = top + row_height * len(families)
    body = [f'<text x="0" y="{top + row_height * i + 17}">{name}</text>' for i, name in enumerate(families)]
    for column, (figure, title, step) in enumerate(panels):
        widest = max(abs(error) for row in errors[figure].values() for error in row)
        limit = step * math.ceil(widest / step)
        x0 = left + column * (width + 50)
        at = lambda error: x0 + width * (error + limit) / (2 * limit)
        body.append(f'<text class="here" x="{x0}" y="14">{title}: error in %</text>')
        for tick in range(-limit, limit + 1, step):
            body.append(f'<line class="{"grid" if tick else "limit"}" x1="{at(tick):.1f}" y1="{top - 8}" '
                        f'x2="{at(tick):.1f}" y2="{bottom}"/>'
                        f'<text class="note" x="{at(tick):.1f}" y="{bottom + 16}" '
                        f'text-anchor="middle">{f"{tick:+d}" if tick else "0"}</text>')
        for i, name in enumerate(families):
            for error in errors[figure][name]:
                body.append(f'<circle class="c-parameters" fill-opacity="0.45" r="3.5" cx="{at(error):.1f}" '
                            f'cy="{top + row_height * i + 13}"/>')
    return svg(760, bottom + 24, report_style(page), "\n".join(body))


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/dev/planner/shardplan").resolve()
    pictures = {"stages": stages(program), "accuracy": accuracy(program, "framework"),
                "accuracy-models": accuracy(program, "model")}
    for name, picture in pictures.items():
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


main()
