"""What libraries allocate inside of an operator, which tensors without data do not show."""
import torch

aten = torch.ops.aten
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
WORKSPACE = 32 * 2**20  # of cuBLAS on Hopper: one a thread that multiplies, which stays


def _attention_backward(gradient, query, key):
    """The workspace of cuDNN's backward pass, as histories of allocations on H100 and H200 show: dq in fp32 with heads
    rounded up to 32, a row sum, and dk and dv of all query heads where they share keys."""
    batch, heads, tokens, size = query.shape
    rows = batch * heads * tokens
    shared = 2 * batch * heads * key.shape[2] * size * key.element_size() if key.shape[1] < heads else 0
    return 4 * rows * (-(-size // 32) * 32) + 4 * rows + shared


def _row_sums(gradient, query, key):
    return 4 * query.numel() // query.shape[-1]


BACKWARD = {aten._scaled_dot_product_cudnn_attention_backward.default: _attention_backward,
            aten._scaled_dot_product_flash_attention_backward.default: _attention_backward,
            aten._scaled_dot_product_efficient_attention_backward.default: _row_sums}


def beside(memory, func, args, made):
    """Lets `memory` have what `func` allocated beside its results."""
    if func in PRODUCTS:
        thread = torch._C._current_graph_task_id() != -1  # autograd's own
        if thread not in memory.libraries:
            memory.libraries[thread] = memory.allocator.give(WORKSPACE)
            memory.count()
    elif func is aten._softmax_backward_data.default:
        memory.passing(args[0].numel() * args[0].element_size())  # grad·output (aten/src/ATen/native/cuda/SoftMax.cu)
    elif func in BACKWARD:
        memory.passing(BACKWARD[func](*args[:3]))
