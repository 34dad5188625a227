// One builder an architecture family; registry.cpp maps model types to them. Sources of tensor
// names, shapes and class defaults: Hugging Face transformers, models/*/configuration_*.py and
// modeling_*.py.
#pragma once

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

Model build_arcee(const ModelConfig& config, const BuildOptions& options);
Model build_cohere2(const ModelConfig& config, const BuildOptions& options);
Model build_ernie4_5(const ModelConfig& config, const BuildOptions& options);
Model build_exaone4(const ModelConfig& config, const BuildOptions& options);
Model build_glm(const ModelConfig& config, const BuildOptions& options);
Model build_granite(const ModelConfig& config, const BuildOptions& options);
Model build_hunyuan_v1_dense(const ModelConfig& config, const BuildOptions& options);
Model build_ministral(const ModelConfig& config, const BuildOptions& options);
Model build_ministral3(const ModelConfig& config, const BuildOptions& options);
Model build_olmo3(const ModelConfig& config, const BuildOptions& options);
Model build_seed_oss(const ModelConfig& config, const BuildOptions& options);
Model build_smollm3(const ModelConfig& config, const BuildOptions& options);
Model build_dots1(const ModelConfig& config, const BuildOptions& options);
Model build_glm4_moe(const ModelConfig& config, const BuildOptions& options);
Model build_glm4_moe_lite(const ModelConfig& config, const BuildOptions& options);
Model build_granitemoe(const ModelConfig& config, const BuildOptions& options);
Model build_minimax_m2(const ModelConfig& config, const BuildOptions& options);
Model build_olmoe(const ModelConfig& config, const BuildOptions& options);
Model build_megatron_gpt(const ModelConfig& config, const BuildOptions& options);
// Counted only.
Model build_deberta_v2(const ModelConfig& config, const BuildOptions& options);
Model build_electra(const ModelConfig& config, const BuildOptions& options);
Model build_mamba(const ModelConfig& config, const BuildOptions& options);
Model build_mamba2(const ModelConfig& config, const BuildOptions& options);
Model build_modernbert(const ModelConfig& config, const BuildOptions& options);
Model build_clip(const ModelConfig& config, const BuildOptions& options);
Model build_deepseek_v32(const ModelConfig& config, const BuildOptions& options);
Model build_ernie4_5_moe(const ModelConfig& config, const BuildOptions& options);
Model build_falcon_h1(const ModelConfig& config, const BuildOptions& options);
Model build_gemma3(const ModelConfig& config, const BuildOptions& options);
Model build_glm_moe_dsa(const ModelConfig& config, const BuildOptions& options);
Model build_hunyuan_v1_moe(const ModelConfig& config, const BuildOptions& options);
Model build_idefics3(const ModelConfig& config, const BuildOptions& options);
Model build_internvl(const ModelConfig& config, const BuildOptions& options);
Model build_jamba(const ModelConfig& config, const BuildOptions& options);
Model build_lfm2(const ModelConfig& config, const BuildOptions& options);
Model build_llama4(const ModelConfig& config, const BuildOptions& options);
Model build_llama4_text(const ModelConfig& config, const BuildOptions& options);
Model build_llava(const ModelConfig& config, const BuildOptions& options);
Model build_llava_next(const ModelConfig& config, const BuildOptions& options);
Model build_mistral3(const ModelConfig& config, const BuildOptions& options);
Model build_mllama(const ModelConfig& config, const BuildOptions& options);
Model build_mllama_text(const ModelConfig& config, const BuildOptions& options);
Model build_nemotron(const ModelConfig& config, const BuildOptions& options);
Model build_nemotron_h(const ModelConfig& config, const BuildOptions& options);
Model build_paligemma(const ModelConfig& config, const BuildOptions& options);
Model build_phimoe(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2_audio(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2_5_vl(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2_vl(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2_vl_text(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_5(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_5_moe(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_5_moe_text(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_5_text(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_next(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_vl(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_vl_moe(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_vl_moe_text(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_vl_text(const ModelConfig& config, const BuildOptions& options);
Model build_siglip(const ModelConfig& config, const BuildOptions& options);
Model build_smolvlm(const ModelConfig& config, const BuildOptions& options);

Model build_camembert(const ModelConfig& config, const BuildOptions& options);
Model build_distilbert(const ModelConfig& config, const BuildOptions& options);
Model build_xlm_roberta(const ModelConfig& config, const BuildOptions& options);
Model build_bloom(const ModelConfig& config, const BuildOptions& options);
Model build_cohere(const ModelConfig& config, const BuildOptions& options);
Model build_falcon(const ModelConfig& config, const BuildOptions& options);
Model build_gemma(const ModelConfig& config, const BuildOptions& options);
Model build_gemma2(const ModelConfig& config, const BuildOptions& options);
Model build_gemma3n(const ModelConfig& config, const BuildOptions& options);
Model build_gemma3n_text(const ModelConfig& config, const BuildOptions& options);
Model build_gemma4(const ModelConfig& config, const BuildOptions& options);
Model build_gemma4_unified(const ModelConfig& config, const BuildOptions& options);
Model build_gemma4_unified_text(const ModelConfig& config, const BuildOptions& options);
Model build_gemma4_text(const ModelConfig& config, const BuildOptions& options);
Model build_wav2vec2(const ModelConfig& config, const BuildOptions& options);
Model build_gemma3_text(const ModelConfig& config, const BuildOptions& options);
Model build_glm4(const ModelConfig& config, const BuildOptions& options);
Model build_dinov2(const ModelConfig& config, const BuildOptions& options);
Model build_gpt2(const ModelConfig& config, const BuildOptions& options);
Model build_bart(const ModelConfig& config, const BuildOptions& options);
Model build_bert(const ModelConfig& config, const BuildOptions& options);
Model build_deepseek_v2(const ModelConfig& config, const BuildOptions& options);
Model build_deepseek_v3(const ModelConfig& config, const BuildOptions& options);
Model build_gpt_oss(const ModelConfig& config, const BuildOptions& options);
Model build_gpt_neo(const ModelConfig& config, const BuildOptions& options);
Model build_gpt_neox(const ModelConfig& config, const BuildOptions& options);
Model build_gptj(const ModelConfig& config, const BuildOptions& options);
Model build_llama(const ModelConfig& config, const BuildOptions& options);
Model build_mistral(const ModelConfig& config, const BuildOptions& options);
Model build_olmo2(const ModelConfig& config, const BuildOptions& options);
Model build_opt(const ModelConfig& config, const BuildOptions& options);
Model build_phi(const ModelConfig& config, const BuildOptions& options);
Model build_phi3(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3(const ModelConfig& config, const BuildOptions& options);
Model build_stablelm(const ModelConfig& config, const BuildOptions& options);
Model build_starcoder2(const ModelConfig& config, const BuildOptions& options);

Model build_m2m_100(const ModelConfig& config, const BuildOptions& options);
Model build_mbart(const ModelConfig& config, const BuildOptions& options);
Model build_mixtral(const ModelConfig& config, const BuildOptions& options);
Model build_granitemoehybrid(const ModelConfig& config, const BuildOptions& options);
Model build_granitemoeshared(const ModelConfig& config, const BuildOptions& options);
Model build_lfm2_moe(const ModelConfig& config, const BuildOptions& options);
Model build_olmo(const ModelConfig& config, const BuildOptions& options);
Model build_apertus(const ModelConfig& config, const BuildOptions& options);
Model build_cwm(const ModelConfig& config, const BuildOptions& options);
Model build_hyperclovax(const ModelConfig& config, const BuildOptions& options);
Model build_jais2(const ModelConfig& config, const BuildOptions& options);
Model build_mpt(const ModelConfig& config, const BuildOptions& options);
Model build_mt5(const ModelConfig& config, const BuildOptions& options);
Model build_pegasus(const ModelConfig& config, const BuildOptions& options);
Model build_qwen2_moe(const ModelConfig& config, const BuildOptions& options);
Model build_qwen3_moe(const ModelConfig& config, const BuildOptions& options);
Model build_roberta(const ModelConfig& config, const BuildOptions& options);
Model build_t5(const ModelConfig& config, const BuildOptions& options);
Model build_vit(const ModelConfig& config, const BuildOptions& options);
Model build_whisper(const ModelConfig& config, const BuildOptions& options);

}  // namespace shardplan
