"""A job of framework `megatron` as Megatron Core builds it: configuration, the stage's chunks, gradients' buffers, optimizer.

The options are those that Megatron-LM's own training program sets by default on recent GPUs: Transformer Engine's
layers, fused kernels where there are some, weight gradients added to their fp32 buffer by the products themselves.
"""
import sys
import types

import torch
import torch.nn.functional as F


def provide_gradient_kernel():
    """The output layer adds its weight gradient with a kernel of APEX; Transformer Engine's product does the same."""
    from transformer_engine.pytorch.cpp_extensions import general_gemm

    def accumulate(total_input, grad_output, main_grad):
        general_gemm(total_input, grad_output, out_dtype=main_grad.dtype, layout="NT", out=main_grad, accumulate=True,
                     grad=True)

    kernel = types.ModuleType("fused_weight_gradient_mlp_cuda")
    kernel.wgrad_gemm_accum_fp32 = kernel.wgrad_gemm_accum_fp16 = accumulate
    sys.modules["fused_weight_gradient_mlp_cuda"] = kernel


def padded_vocabulary(job):
    """As Megatron-LM pads it: to a multiple of 128 on every tensor-parallel rank."""
    multiple = 128 * job.get("parallel", {}).get("tensor", 1)
    return -(-job["model"]["vocab_size"] // multiple) * multiple


def _layers(model):
    return model.get("num_hidden_layers", model.get("n_layer"))


def _network(model):
    """What depends on the network alone."""
    if model["model_type"] == "gpt2":
        return {"hidden_size": model["n_embd"], "num_attention_heads": model["n_head"],
                "ffn_hidden_size": 4 * model["n_embd"], "normalization": "LayerNorm", "activation_func": F.gelu,
                "add_bias_linear": True, "hidden_dropout": model.get("resid_pdrop", 0.1),
                "attention_dropout": model.get("attn_pdrop", 0.1)}
    keys = {"hidden_size": model["hidden_size"], "num_attention_heads": model["num_attention_heads"],
            "num_query_groups": model.get("num_key_value_heads", model["num_attention_heads"]),
            "ffn_hidden_size": model["intermediate_size"], "normalization": "RMSNorm", "activation_func": F.silu,
            "gated_linear_unit": True, "add_bias_linear": False, "hidden_dropout": 0.0, "attention_dropout": 0.0,
            "layernorm_epsilon": 1e-5}
    if "head_dim" in model:
        keys["kv_channels"] = model["head_dim"]
    if model["model_type"].startswith("qwen2"):
        keys["add_qkv_bias"] = True
    if model["model_type"].startswith("qwen3"):
        keys["qk_layernorm"] = True
    experts = model.get("num_local_experts", model.get("num_experts", model.get("n_routed_experts")))
    if experts:
        # Random tokens over random routers come out uneven; the estimate's even load is asked for.
        keys.update(num_moe_experts=experts, moe_router_topk=model["num_experts_per_tok"],
                    moe_ffn_hidden_size=model.get("moe_intermediate_size", model["intermediate_size"]),
                    moe_grouped_gemm=True, moe_token_dispatcher_type="alltoall",
                    moe_router_load_balancing_type="aux_loss", moe_aux_loss_coeff=1e-2,
                    moe_router_force_load_balancing=True, moe_permute_fusion=model.get("permute_fusion", True))
        if model.get("n_shared_experts"):
            keys["moe_shared_expert_intermediate_size"] = model["n_shared_experts"] * model["moe_intermediate_size"]
        if model.get("first_k_dense_replace"):
            dense = model["first_k_dense_replace"]
            keys["moe_layer_freq"] = [0] * dense + [1] * (_layers(model) - dense)
    if "kv_lora_rank" in model:
        keys.update(multi_latent_attention=True, q_lora_rank=model.get("q_lora_rank"),
                    kv_lora_rank=model["kv_lora_rank"], qk_head_dim=model["qk_nope_head_dim"],
                    qk_pos_emb_head_dim=model["qk_rope_head_dim"], v_head_dim=model["v_head_dim"], rope_type="yarn",
                    qk_layernorm=True)
    return keys


def _recomputation(job):
    if job["checkpointing"] == "full":
        return {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1,
                "distribute_saved_activations": job["framework"].get("distribute_saved_activations", False)}
    if job["checkpointing"] == "selective":
        return {"recompute_granularity": "selective"}
    return {}


def make_config(job):
    from megatron.core.transformer.enums import AttnBackend
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

    model, parallel, framework = job["model"], job.get("parallel", {}), job["framework"]
    tensor, pipeline = parallel.get("tensor", 1), parallel.get("pipeline", 1)
    chunks = parallel.get("virtual_pipeline", 1)
    keys = {
        "num_layers": _layers(model), **_network(model), **_recomputation(job),
        "tensor_model_parallel_size": tensor, "pipeline_model_parallel_size": pipeline,
        "virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        "context_parallel_size": parallel.get("context", 1), "expert_model_parallel_size": parallel.get("expert", 1),
        "expert_tensor_parallel_size": parallel.get("expert_tensor", tensor),
        "sequence_parallel": tensor > 1 and parallel.get("sequence_parallel", True),
        "bf16": True, "params_dtype": torch.bfloat16, "pipeline_dtype": torch.bfloat16,
        "attention_backend": AttnBackend.fused if job["attention"] == "sdpa" else AttnBackend.unfused,
        "bias_activation_fusion": True, "masked_softmax_fusion": True, "bias_dropout_fusion": True,
        "apply_rope_fusion": True, "persist_layer_norm": True, "gradient_accumulation_fusion": True,
        "cross_entropy_loss_fusion": framework.get("cross_entropy_fusion", False), "cross_entropy_fusion_impl": "te",
        "deallocate_pipeline_outputs": True, "batch_p2p_comm": chunks == 1, "overlap_p2p_comm": chunks > 1,
        "perform_initialization": torch.distributed.get_backend() != "fake",
    }
    kind = MLATransformerConfig if keys.get("multi_latent_attention") else TransformerConfig
    return kind(**keys)


def _make_chunk(job, config, index, chunks):
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.module import Float16Module

    model, length = job["model"], job["workload"]["sequence_length"]
    gpt2 = model["model_type"] == "gpt2"
    stage = index if chunks > 1 else None
    module = GPTModel(
        config=config, transformer_layer_spec=get_gpt_decoder_block_spec(config, use_transformer_engine=True,
                                                                         vp_stage=stage),
        vocab_size=padded_vocabulary(job), max_sequence_length=model.get("n_positions", length),
        pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage),
        post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage),
        share_embeddings_and_output_weights=model.get("tie_word_embeddings", gpt2),
        position_embedding_type="learned_absolute" if gpt2 else "rope", vp_stage=stage)
    return Float16Module(config, module.cuda())


def build(job):
    """(config, chunks wrapped in Megatron's DistributedDataParallel, optimizer)"""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    config, framework = make_config(job), job["framework"]
    chunks = job.get("parallel", {}).get("virtual_pipeline", 1)
    divided = framework.get("distributed_optimizer", True)
    overlap = framework.get("overlap_grad_reduce", True)
    gradients = DistributedDataParallelConfig(
        grad_reduce_in_fp32=framework.get("grad_reduce_dtype", "fp32") == "fp32", overlap_grad_reduce=overlap,
        overlap_param_gather=divided and overlap and framework.get("overlap_param_gather", True),
        use_distributed_optimizer=divided, bucket_size=framework.get("bucket_size"))
    modules = [_make_chunk(job, config, index, chunks) for index in range(chunks)]
    model = [DistributedDataParallel(config, gradients, module, disable_bucketing=index > 0)
             for index, module in enumerate(modules)]
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-5, bf16=True, params_dtype=torch.bfloat16, clip_grad=1.0,
                        use_distributed_optimizer=divided, overlap_param_gather=gradients.overlap_param_gather),
        model, use_gloo_process_groups=False)
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    if overlap:
        hooks = [chunk.no_sync for chunk in model]
        config.no_sync_func = hooks if chunks > 1 else hooks[0]
    return config, model, optimizer
