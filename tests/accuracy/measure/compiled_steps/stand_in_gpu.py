"""A GPU that is not there, for programs that compile a step and never run it.

PyTorch asks the CUDA runtime which GPU there is before it traces, partitions and schedules a step. `stand_in()`
answers in its place, as an H100 would: it starts the program again with a small library in front of CUDA's, and
replaces what Python code asks. No kernel can run afterwards. Written for PyTorch 2.11."""
import inspect
import os
import subprocess
import sys
import tempfile
import textwrap

RUNTIME = r"""
#include <driver_types.h>
#include <cstring>
extern "C" {
int cudaGetDeviceCount(int* n) { *n = 1; return 0; }
int cudaGetDevice(int* d) { *d = 0; return 0; }
int cudaSetDevice(int) { return 0; }
int cudaDeviceGetStreamPriorityRange(int* a, int* b) { *a = 0; *b = -5; return 0; }
int cudaGetLastError() { return 0; }
int cudaPeekAtLastError() { return 0; }
int cudaDeviceSynchronize() { return 0; }
int cudaStreamSynchronize(void*) { return 0; }
int cudaStreamIsCapturing(void*, int* s) { *s = 0; return 0; }
int cudaStreamQuery(void*) { return 0; }
int cudaStreamCreateWithPriority(void** s, unsigned, int) { *s = (void*)16; return 0; }
int cudaEventCreateWithFlags(void** e, unsigned) { *e = (void*)32; return 0; }
int cudaEventRecord(void*, void*) { return 0; }
int cudaEventQuery(void*) { return 0; }
int cudaEventDestroy(void*) { return 0; }
int cudaStreamWaitEvent(void*, void*, unsigned) { return 0; }
int cudaDriverGetVersion(int* v) { *v = 13000; return 0; }
int cudaDeviceGetAttribute(int* v, int, int) { *v = 9; return 0; }
int cudaDeviceCanAccessPeer(int* v, int, int) { *v = 0; return 0; }
int cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  memset(p, 0, sizeof *p);
  strcpy(p->name, "NVIDIA H100 80GB HBM3");
  p->major = 9; p->multiProcessorCount = 132; p->totalGlobalMem = 85017493504; p->warpSize = 32;
  p->maxThreadsPerBlock = 1024; p->maxThreadsPerMultiProcessor = 2048; p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlock = 49152; p->sharedMemPerBlockOptin = 232448; p->sharedMemPerMultiprocessor = 233472;
  p->l2CacheSize = 52428800;
  return 0;
}
}
"""


def build(folder, source, name, *flags):
    path = os.path.join(folder, name)
    subprocess.run(["g++", "-w", "-std=c++17", "-shared", "-fPIC", "-o", path, "-x", "c++", "-", *flags], input=source.encode(), check=True)
    return path


def start_again():
    """Puts the libraries in front of CUDA's; they must be there before the process starts."""
    import importlib.util
    site = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin))
    headers = next(root for root, _, files in os.walk(os.path.join(site, "nvidia")) if "driver_types.h" in files)
    stub = os.path.join(site, "torch", "lib", "libcaffe2_nvrtc.so")
    asked = [line.split()[-1].split("@")[0] for line in subprocess.check_output(["nm", "-D", "-u", stub], text=True).splitlines()]
    own = {"cuDevicePrimaryCtxGetState": "int cuDevicePrimaryCtxGetState(int, unsigned* f, int* a) { *f = 0; *a = 0; return 0; }"}
    driver = 'extern "C" {' + "\n".join(own.get(s, f"int {s}(...) {{ return 0; }}") for s in asked if s.startswith("cu")) + "}"
    folder = tempfile.mkdtemp(prefix="stand_in_gpu")
    build(folder, driver, "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    runtime = build(folder, RUNTIME, "runtime.so", "-I" + headers)
    os.environ.update(LD_PRELOAD=runtime, STAND_IN_GPU="1", LD_LIBRARY_PATH=folder + ":" + os.environ.get("LD_LIBRARY_PATH", ""))
    os.execv(sys.executable, [sys.executable, *sys.argv])


class Properties:
    """Of an H100 as torch.cuda.get_device_properties gives them."""
    name = "NVIDIA H100 80GB HBM3"
    major, minor, multi_processor_count, total_memory = 9, 0, 132, 85017493504
    warp_size, regs_per_multiprocessor, max_threads_per_multi_processor, max_threads_per_block = 32, 65536, 2048, 1024
    shared_memory_per_block, shared_memory_per_block_optin, shared_memory_per_multiprocessor = 49152, 232448, 233472
    L2_cache_size, gcnArchName = 52428800, ""


class Guard:
    def __init__(self, *_):
        self.idx = self.prev_idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def stand_in():
    if os.environ.get("STAND_IN_GPU") != "1":
        start_again()
    import torch
    torch._C._ensureCUDADeviceGuardSet()
    answer_python(torch)
    answer_inductor(torch)


def always(value):
    """A function of its own each time: Dynamo keeps rules by function."""
    return lambda *a, **k: value


def generator_of(torch):
    """The GPU's random numbers: recomputed regions ask for their state."""
    class Generator(torch.Generator):
        device = torch.device("cuda", 0)

        def clone_state(self):
            return self
    return Generator()


def answer_python(torch):
    properties = Properties()
    cuda = torch.cuda
    for name, value in dict(is_available=always(True), is_initialized=always(True), is_bf16_supported=always(True), device_count=lambda: 1, current_device=always(0), _lazy_init=always(None), synchronize=always(None),
                            set_device=always(None), _get_device_properties=lambda d=None: properties, get_device_capability=lambda d=None: (9, 0), get_device_name=lambda d=None: properties.name,
                            _exchange_device=always(0), _maybe_exchange_device=always(0), device=Guard, _DeviceGuard=Guard, set_rng_state=always(None),
                            get_rng_state=lambda *a, **k: torch.zeros(16, dtype=torch.uint8)).items():
        setattr(cuda, name, value)
    torch._C._cuda_getCurrentRawStream = torch._C._cuda_getDevice = always(0)
    cuda.default_generators = (generator_of(torch),)
    torch.accelerator.is_available = lambda: False
    torch.accelerator.current_accelerator = always(None)
    import torch._dynamo.device_interface as interfaces
    cuda_interface = interfaces.CudaInterface
    for name, value in dict(is_available=always(True), device_count=lambda: 1, current_device=always(0), get_device_properties=lambda d=None: properties, get_compute_capability=lambda d=None: 90,
                            is_bf16_supported=always(True), synchronize=always(None), get_raw_stream=always(0), set_device=always(None), raise_if_triton_unavailable=always(None), is_triton_capable=always(True)).items():
        setattr(cuda_interface, name, staticmethod(value))
    cuda_interface.device = Guard
    worker = cuda_interface.Worker
    worker.get_device_properties, worker.current_device, worker.set_device = staticmethod(lambda d=None: properties), staticmethod(always(0)), staticmethod(always(None))
    import torch._dynamo.utils as dynamo
    dynamo.common_constant_types.add(Properties)  # what it folds while it traces
    import torch._subclasses.fake_tensor as fake_tensor
    fake_tensor.init_gpu_context = always(None)


def answer_inductor(torch):
    import torch.utils._triton as has
    has.has_triton = has.has_triton_package = lambda *a, **k: True
    import triton.backends.compiler
    import triton.runtime
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    driver = type("Driver", (), dict(get_current_target=lambda s: target, get_current_device=lambda s: 0, get_current_stream=lambda s, d=0: 0,
                                     get_active_torch_device=lambda s: torch.device("cuda")))
    triton.runtime.driver.set_active(driver())
    triton.runtime.jit.JITFunction.run = always(None)  # a kernel that is called outside of what is compiled
    import torch._functorch.config
    import torch._inductor.config
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True
    torch._functorch.config.force_non_lazy_backward_lowering = True
    # Patterns of attention written out are tried on the GPU, and in no model measured here. Products are padded only
    # where a case says so: whether that is faster is timed.
    torch._inductor.config.shape_padding = False
    import torch._inductor.fx_passes.fuse_attention as attention
    import torch._inductor.fx_passes.joint_graph as joint
    import torch._inductor.fx_passes.misc_patterns as misc
    attention._sfdp_init = misc._misc_patterns_init = lambda *a, **k: None
    # Constants are folded with real tensors of one element: here on the CPU.
    folder = joint.UniformValueConstantFolder
    source = textwrap.dedent(inspect.getsource(folder._deduce_value))
    for old, new in (("**node.kwargs)", "**{**node.kwargs, 'device': 'cpu'})"),
                     ('kwargs.pop("memory_format", None)', 'kwargs.pop("memory_format", None)\n        if "device" in kwargs: kwargs["device"] = "cpu"'),
                     ("if node.target == prims.device_put.default:", "if node.target == prims.device_put.default:\n        return self.env[node.args[0]]\n    if False:"),
                     ("super()", "super(UniformValueConstantFolder, self)")):
        source = source.replace(old, new)
    exec(source, joint.__dict__)
    folder._deduce_value = joint.__dict__["_deduce_value"]
