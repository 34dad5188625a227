"""Does the largest micro-batch that is predicted to fit run, and the next one not? One case after the other, on a GPU of
which another process holds so much that only the case's memory is free."""
import argparse
import json
import subprocess
import sys

HOLDER = """
import sys, torch
context = torch.zeros(1, device="cuda")
free = torch.cuda.mem_get_info()[0]
blocks = []
surplus = free - int(sys.argv[1])
while surplus >= 1 << 21:
    size = min(surplus, 1 << 30) >> 21 << 21
    blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    surplus = torch.cuda.mem_get_info()[0] - int(sys.argv[1])
print(torch.cuda.mem_get_info()[0], flush=True)
sys.stdin.read()
"""


def run(program, job, micro_batch):
    job["workload"]["micro_batch"] = micro_batch
    with open("job.json", "w", encoding="utf-8") as file:
        json.dump(job, file)
    done = subprocess.run([program, "job.json", "--steps", "3", "--quiet"], capture_output=True, text=True, check=False)
    return {"micro_batch": micro_batch, "exit": done.returncode, "message": done.stderr[:600]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan-validate")
    parser.add_argument("cases", help="list of {name, job, usable_bytes, largest_micro_batch}")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    with open(options.cases, encoding="utf-8") as file:
        cases = json.load(file)
    results = []
    for case in cases:
        with subprocess.Popen([sys.executable, "-c", HOLDER, str(case["usable_bytes"])], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:
            free = int(holder.stdout.readline())
            largest = case["largest_micro_batch"]
            outcomes = [run(options.program, case["job"], n) for n in (largest, largest + 1)]
            holder.stdin.close()
        right = [o["exit"] for o in outcomes] == [0, 5]
        results.append({**case, "free_bytes": free, "outcomes": outcomes, "right": right})
        print(f"{case['name']:44} free {free / 2**30:6.2f} GiB: {largest} exit {outcomes[0]['exit']}, "
              f"{largest + 1} exit {outcomes[1]['exit']} {'' if right else '  WRONG'}", flush=True)
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
