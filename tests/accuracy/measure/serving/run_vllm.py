"""Runs vLLM itself with random weights, and writes what it took: bytes by the engine's own profile, blocks of its
cache, seconds of its steps.

    python serving/run_vllm.py cases/vllm.json OUT [GROUP ...]

A case is a job of kind inference with an engine: `batch` sequences of prompt_length and new_tokens that are all there
at the start. Cases of one `group` are asked of one engine, whose arguments their job says; `arguments` are vLLM's own
that no job says, `environment` variables of it, `sleep` the levels that are tried at the end. Each group is a process,
forked from one that has imported vLLM (an import takes ten seconds) and has not touched the GPU; the engine is another,
as vLLM starts it. A group's files are written anew as soon as more is known: GROUP.json by the one that asks,
GROUP.engine.json by the engine. No tokenizer and no weights are read; prompts are random token ids, none shared.

Of an engine over several GPUs each worker writes its own: GROUP.engine.1.json is of rank 1. `gpus` of a group's first
case says which GPUs it has, 0 and those that follow where it does not; a group begins as soon as they are free, so that
groups on other GPUs run side by side. With MEASURE_AFTER, a file, none begins before it is there.

Two things of vLLM are left out, for they take half a minute of each start: the subprocess that imports it again to look
at a model's class, and the Triton kernels for samplers that these requests do not ask for (warmup_kernels; FlashInfer's
are not installed either). Neither holds memory afterwards.
"""
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                  VLLM_USE_FLASHINFER_SAMPLER="0")


ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
                 "qwen3_moe": "Qwen3MoeForCausalLM", "mixtral": "MixtralForCausalLM", "olmoe": "OlmoeForCausalLM",
                 "glm4_moe": "Glm4MoeForCausalLM", "qwen2_moe": "Qwen2MoeForCausalLM",
                 "granitemoe": "GraniteMoeForCausalLM", "ernie4_5_moe": "Ernie4_5_MoeForCausalLM"}
OPTIONS = {"gpu_memory_utilization": "gpu_memory_utilization", "max_num_batched_tokens": "max_num_batched_tokens",
           "max_num_seqs": "max_num_seqs", "max_model_length": "max_model_len", "block_size": "block_size",
           "tensor_parallel": "tensor_parallel_size"}


def gpus_of(case):
    """The GPUs of the case's engine, by their number in the machine."""
    return case.get("gpus") or list(range(case["job"]["workload"]["engine"].get("tensor_parallel", 1)))


def model_folder(job):
    """A config.json that vLLM reads: what the case leaves out is what its class takes."""
    config = dict(job["model"])
    config.setdefault("architectures", [ARCHITECTURES[config["model_type"]]])
    config.setdefault("max_position_embeddings", 131072)
    config.update(dtype="bfloat16", bos_token_id=1, eos_token_id=2)
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return folder


def arguments_of(case):
    workload = case["job"]["workload"]
    said = {OPTIONS[key]: value for key, value in workload["engine"].items() if key in OPTIONS}
    if workload["engine"].get("expert_parallel", 1) > 1:
        said["enable_expert_parallel"] = True
    if "kv_cache_dtype" in workload:
        said["kv_cache_dtype"] = workload["kv_cache_dtype"]
    return {"load_format": "dummy", "dtype": "bfloat16", "skip_tokenizer_init": True, "seed": 0, **said,
            **case.get("arguments", {})}


class Device:
    """The GPUs' memory as their driver counts it: contexts of all processes too."""

    def __init__(self, gpus):
        import pynvml
        pynvml.nvmlInit()
        self.nvml = pynvml
        self.handles = [pynvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in gpus]

    def used_of_each(self):
        return [self.nvml.nvmlDeviceGetMemoryInfo(handle).used for handle in self.handles]

    def used(self):
        """Of the first."""
        return self.used_of_each()[0]


def rank():
    import torch
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def of_rank(path):
    """GROUP.engine.json of the first, GROUP.engine.1.json of the next."""
    return path if rank() == 0 else path.replace(".json", f".{rank()}.json")


def note_peaks(path):
    """The allocator's counts after each part of an engine's start, in both of its runners; the engine writes them."""
    import torch
    from vllm.v1.worker import gpu_model_runner, gpu_worker
    from vllm.v1.worker.gpu import model_runner
    row = {}

    def after(owner, method, key, more=None):
        inner = getattr(owner, method)

        def wrapped(self, *args, **kwargs):
            result = inner(self, *args, **kwargs)
            torch.cuda.synchronize()
            stats = torch.cuda.memory_stats()
            row.setdefault(key, {"result": result if isinstance(result, int) else None,
                                 "peak": stats["allocated_bytes.all.peak"],
                                 "allocated": stats["allocated_bytes.all.current"],
                                 "reserved": stats["reserved_bytes.all.current"],
                                 "free": torch.cuda.mem_get_info()[0]})
            if more:
                row.update(more(self))
            with open(of_rank(path), "w", encoding="utf-8") as file:
                json.dump(row, file, indent=1)
            return result

        setattr(owner, method, wrapped)

    after(gpu_worker.Worker, "determine_available_memory", "after_profile", profile_of)
    after(gpu_worker.Worker, "compile_or_warm_up_model", "started", cache_of)
    for owner in (gpu_model_runner.GPUModelRunner, model_runner.GPUModelRunner):
        after(owner, "load_model", "loaded")
        after(owner, "_dummy_run", "profiled_pass")
        after(owner, "_dummy_sampler_run", "profiled_sampler")
        after(owner, "profile_run", "profile")
        after(owner, "initialize_kv_cache", "cache_made")
        after(owner, "capture_model", "captured")


def note_passes(path):
    """Of each pass of the first runner and the first rank: its tokens, microseconds until the model's kernels are started,
    and until the host is through with the pass. One line a pass; a line takes a few microseconds."""
    from vllm.v1.worker import gpu_model_runner
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    runner = gpu_model_runner.GPUModelRunner
    forward, execute = runner._model_forward, runner.execute_model
    started = [0.0]

    def timed_forward(self, *args, **kwargs):
        begin = time.perf_counter()
        result = forward(self, *args, **kwargs)
        started[0] = time.perf_counter() - begin
        return result

    def timed_execute(self, scheduled, *args, **kwargs):
        begin = time.perf_counter()
        started[0] = 0.0
        result = execute(self, scheduled, *args, **kwargs)
        all_of_it = time.perf_counter() - begin
        if rank() == 0:
            os.write(file, f"{scheduled.total_num_scheduled_tokens} {len(scheduled.num_scheduled_tokens)} "
                           f"{1e6 * started[0]:.0f} {1e6 * all_of_it:.0f}\n".encode())
        return result

    runner._model_forward, runner.execute_model = timed_forward, timed_execute


def profile_of(worker):
    return {"memory": {"total": worker.init_snapshot.total_memory,
                       "free_at_start": worker.init_snapshot.free_memory,
                       "requested": int(worker.requested_memory),
                       "weights": int(worker.model_runner.model_memory_usage),
                       "activations": worker.peak_activation_memory,
                       "beside_torch": worker.non_torch_memory,
                       "graphs_estimated": worker.cudagraph_memory_estimate,
                       "cache_available": worker.available_kv_cache_memory_bytes}}


def cache_of(worker):
    cache = getattr(worker.model_runner, "kv_caches", None)
    if not isinstance(cache, list) or not cache:
        return {}
    return {"cache": {"shape": list(cache[0].shape), "layers": len(cache), "dtype": str(cache[0].dtype)}}


def engine_of(config):
    """What vLLM made of its arguments."""
    compilation, scheduler = config.compilation_config, config.scheduler_config
    sizes = compilation.cudagraph_capture_sizes or []
    return {"blocks": config.cache_config.num_gpu_blocks,
            "block_tokens": config.cache_config.block_size,
            "batched_tokens": scheduler.max_num_batched_tokens,
            "sequences": scheduler.max_num_seqs,
            "model_length": config.model_config.max_model_len,
            "chunked_prefill": scheduler.enable_chunked_prefill,
            "async_scheduling": scheduler.async_scheduling,
            "second_runner": config.use_v2_model_runner,
            "graph_mode": str(compilation.cudagraph_mode),
            "graph_sizes": len(sizes),
            "largest_graph": max(sizes, default=0)}


def run_load(llm, sequences, prompt, new, seed):
    """All requests are there at the start; seconds to each sequence's first token, and of each step."""
    from vllm import SamplingParams
    draw = random.Random(seed)
    sampling = SamplingParams(temperature=1.0, max_tokens=new, min_tokens=new, ignore_eos=True, detokenize=False)
    engine = llm.llm_engine
    begin = time.perf_counter()
    for i in range(sequences):
        ids = [draw.randrange(100, 20000) for _ in range(prompt)]
        engine.add_request(f"{seed}-{i}", {"prompt_token_ids": ids}, sampling)
    added = time.perf_counter() - begin
    steps, firsts, tokens = [], [], 0
    seen = {}
    last = time.perf_counter()
    while engine.has_unfinished_requests():
        for output in engine.step():
            count = len(output.outputs[0].token_ids)
            tokens += count - seen.get(output.request_id, 0)
            if output.request_id not in seen:
                firsts.append(time.perf_counter() - begin)
            seen[output.request_id] = count
        now = time.perf_counter()
        steps.append(now - last)
        last = now
    whole = last - begin  # an engine of its own process begins while requests are still added
    after = max(firsts)
    cut = len(steps) // 2  # of the second half of steps: all sequences decode
    rest = sorted(steps[cut:-2] or steps)
    return {"sequences": sequences, "prompt": prompt, "new": new, "adding_seconds": added, "seconds": whole,
            "tokens": tokens, "first_token_seconds": min(firsts), "last_first_token_seconds": after,
            "steps": len(steps), "decode_seconds": rest[len(rest) // 2],
            "decode_mean_seconds": (whole - after) / max(new - 1, 1)}


def sleep_and_wake(llm, device, level):
    row = {"level": level, "used_before": device.used()}

    def timed(key, action):
        begin = time.perf_counter()
        action()
        row[key + "_seconds"] = time.perf_counter() - begin
        row[key + "_used"] = device.used()

    timed("sleep", lambda: llm.sleep(level=level))
    timed("wake_weights", lambda: llm.wake_up(tags=["weights"]))
    timed("wake_cache", lambda: llm.wake_up(tags=["kv_cache"]))
    return row


def run_group(group, cases, out):
    from vllm import LLM
    arguments = arguments_of(cases[0])
    os.environ.update(cases[0].get("environment", {}))
    row = {"group": group, "arguments": arguments, "environment": cases[0].get("environment", {})}

    def write():
        with open(os.path.join(out, group + ".json"), "w", encoding="utf-8") as file:
            json.dump(row, file, indent=1)

    gpus = gpus_of(cases[0])
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in gpus)
    device = Device(gpus)
    row["used_before"] = device.used()
    note_peaks(os.path.join(out, group + ".engine.json"))
    note_passes(os.path.join(out, group + ".passes.txt"))
    begin = time.perf_counter()
    try:
        llm = LLM(model_folder(cases[0]["job"]), **arguments)
    except Exception as error:  # an engine that refuses is an answer too
        row["refused"] = f"{type(error).__name__}: {error}"[:2000]
        write()
        raise
    row["start_seconds"] = time.perf_counter() - begin
    row["engine"] = engine_of(llm.llm_engine.vllm_config)
    row["used"] = device.used()
    write()
    row["loads"] = {}
    for seed, case in enumerate(cases):
        load = [case["job"]["workload"][key] for key in ("batch", "prompt_length", "new_tokens")]
        run_load(llm, load[0], load[1], 4, 1000 + seed)  # kernels that are made at their first use
        row["loads"][case["name"]] = run_load(llm, *load, seed)
        again = [run_load(llm, *load, 2000 + i)["first_token_seconds"] for i in range(case.get("repeats", 0))]
        if again:
            row["loads"][case["name"]]["first_token_seconds_again"] = again
        write()
    row["used_after_loads"] = device.used()
    if len(gpus) > 1:
        row["used_after_loads_of_each"] = device.used_of_each()
    row["sleeps"] = [sleep_and_wake(llm, device, level) for level in cases[0].get("sleep", [])]
    write()


class Apart:
    """A group in a process of its own, which is ended after `limit` seconds."""

    def __init__(self, group, cases, out, limit):
        self.group, self.limit, self.gpus = group, limit, gpus_of(cases[0])
        self.device = Device(self.gpus)
        self.before = self.device.used_of_each()
        self.begin, self.status, self.ended = time.perf_counter(), None, None
        self.child = os.fork()
        if self.child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            log = os.open(os.path.join(out, group + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            code = 1
            try:
                run_group(group, cases, out)
                code = 0
            except BaseException:  # whatever it was is in the log
                traceback.print_exc()
            os._exit(code)

    def kill(self):
        try:
            os.killpg(self.child, signal.SIGKILL)  # with its engine
        except ProcessLookupError:
            pass

    def over(self):
        """Its processes are gone, and its GPUs are empty again or have had ten seconds for that."""
        now = time.perf_counter()
        if self.status is None:
            if now > self.begin + self.limit:
                self.kill()
            done, status = os.waitpid(self.child, os.WNOHANG)
            if not done:
                return False
            self.kill()
            self.status, self.ended = status, now
        empty = all(used <= before + (64 << 20) for used, before in zip(self.device.used_of_each(), self.before))
        if not empty and now < self.ended + 10:
            return False
        print(f"{self.group}: status {self.status}, {now - self.begin:.1f} s", flush=True)
        return True


def run_all(waiting, out):
    """`waiting`: (group, cases), in their order; one whose GPUs are in use lets none behind it pass that wants them."""
    running = []
    try:
        while waiting or running:
            running = [group for group in running if not group.over()]
            taken = {gpu for group in running for gpu in group.gpus}
            for group, cases in list(waiting):
                gpus = set(gpus_of(cases[0]))
                if not gpus & taken:
                    running.append(Apart(group, cases, out, cases[0].get("limit", 90)))
                    waiting.remove((group, cases))
                taken |= gpus
            time.sleep(0.05)
    finally:
        for group in running:
            group.kill()


def main():
    case_list, out, *asked = sys.argv[1:]
    groups = {}
    for case in load_cases(case_list):
        groups.setdefault(case["group"], []).append(case)
    begin = time.perf_counter()
    # Imported once, for all groups.
    import torch
    import vllm
    from vllm import LLM  # noqa: F401
    from vllm.model_executor.models import registry
    from vllm.v1.worker import gpu_worker
    registry._run_in_subprocess = lambda function: function()
    gpu_worker.warmup_kernels = lambda *_: None
    print(f"vllm {vllm.__version__}, torch {torch.__version__}: imported in {time.perf_counter() - begin:.1f} s, "
          f"GPU touched: {torch.cuda.is_initialized()}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # run_all ends what it began
    after = os.environ.get("MEASURE_AFTER")
    while after and not os.path.exists(after):
        time.sleep(0.05)
    run_all([(group, groups[group]) for group in asked or groups], out)


if __name__ == "__main__":
    main()
