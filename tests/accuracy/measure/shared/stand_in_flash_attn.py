"""The package flash-attn 2 where it is not installed: its interface over PyTorch's copy of the same kernels.

PyTorch builds FlashAttention-2 from the package's sources (third_party/flash-attention) and calls it through
aten._flash_attention_forward, with the same results, workspaces and limits. Autograd keeps for its backward pass what
the package's FlashAttnFunc keeps. Only what transformers calls for full samples is here.
"""
import importlib.machinery
import sys
import types

import torch


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    deterministic=False):
    if softcap:
        raise ValueError("PyTorch's call has no softcap")
    left, right = (None if side < 0 else side for side in window_size)
    return torch.ops.aten._flash_attention_forward(
        q, k, v, None, None, q.shape[1], k.shape[1], dropout_p, causal, False,
        scale=q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale, window_size_left=left,
        window_size_right=0 if causal and left is not None else right)[0]


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, deterministic=False):
    raise ValueError("samples of different lengths are not measured")


def install():
    """Before a model is built with attn_implementation="flash_attention_2"."""
    from transformers import modeling_flash_attention_utils as utils

    package, padding = types.ModuleType("flash_attn"), types.ModuleType("flash_attn.bert_padding")
    package.flash_attn_func, package.flash_attn_varlen_func = flash_attn_func, flash_attn_varlen_func
    package.flash_attn_with_kvcache = padding.pad_input = padding.unpad_input = None
    package.bert_padding = padding
    package.__spec__ = importlib.machinery.ModuleSpec("flash_attn", None)
    sys.modules |= {"flash_attn": package, "flash_attn.bert_padding": padding}
    utils.is_flash_attn_2_available = lambda: True
    for check in ("general_availability_check", "pkg_availability_check"):
        utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX[2][check] = lambda *_, **__: True
