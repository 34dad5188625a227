"""What libraries allocate inside of an operator, which tensors without data do not show."""
import torch

aten = torch.ops.aten
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
MULTIPROCESSORS = 132  # of Hopper
MOST_UNSORTED = 3072  # tokens of a table's gradient
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


def _rows_of_table(rows, table_rows, width):
    """The sums of a table's rows by parts of ten tokens, in fp32, where the kernel sorts tokens before it adds
    (aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu)."""
    if rows <= MOST_UNSORTED:
        return 0
    return 4 * width * (rows // 10 + min(rows, table_rows))


def _row_sums_of_blocks(rows, columns):
    """Sums of columns that several blocks of threads add up leave their parts (aten/src/ATen/native/cuda/Reduce.cuh,
    setReduceConfig and ReduceConfig::global_memory_size)."""
    along = next(size for size in (4, 2, 1) if columns % size == 0)  # columns that a thread loads
    most = 512 // along
    power = lambda size: most if size >= most else 1 << (size.bit_length() - 1)
    width = min(power(columns // along), 32)
    height = min(power(rows), most // width)
    width = min(power(columns // along), most // height)
    if rows < min(height * 16, 256):
        return 0
    values, grid = -(-rows // height), -(-(columns // along) // width)
    target = MULTIPROCESSORS * (2048 // (width * height))
    if values < 256 or grid > target:
        return 0
    blocks = max(min(-(-target // grid), -(-values // 16)), -(-values // 256))
    return 4 * columns * blocks * width * along if blocks > 1 else 0


def beside(memory, func, args, made):
    """Lets `memory` have what `func` allocated beside its results."""
    if func in PRODUCTS:
        thread = torch._C._current_graph_task_id() != -1  # autograd's own
        if thread not in memory.libraries:
            memory.libraries[thread] = memory.allocator.give(WORKSPACE)
            memory.count()
    elif func is aten._softmax_backward_data.default:
        memory.passing(args[0].numel() * args[0].element_size())  # grad·output (aten/src/ATen/native/cuda/SoftMax.cu)
    elif func is aten.embedding_dense_backward.default:
        memory.passing(_rows_of_table(args[1].numel(), args[2], made.shape[-1]))
    elif func is aten.sum.dim_IntList and made.numel() == args[0].shape[-1] < args[0].numel():
        memory.passing(_row_sums_of_blocks(args[0].numel() // made.numel(), made.numel()))
    elif func in BACKWARD:
        memory.passing(BACKWARD[func](*args[:3]))
