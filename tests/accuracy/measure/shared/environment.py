"""The machine and library versions a measurement was made with: no host names, no paths."""
import os
import platform
import subprocess

import torch
import transformers


def _driver():
    try:
        answer = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, check=True)
        return answer.stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def _cpu():
    """The processor's name, which says how fast the host issues kernels."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return None


def environment(**libraries):
    """`libraries`: the versions of those that only some programs use. Without a GPU nothing is said of one."""
    gpu = {
        "gpu": torch.cuda.get_device_name(),
        "gpu_bytes": torch.cuda.mem_get_info()[1],
        "driver": _driver(),
        "nccl": ".".join(str(part) for part in torch.cuda.nccl.version()),
    } if torch.cuda.is_available() else {}
    return {
        **gpu,
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **libraries,
        "python": platform.python_version(),
        "allocator_settings": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        **({"launch_blocking": True} if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" else {}),
    }
