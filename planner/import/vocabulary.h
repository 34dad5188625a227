// Words that trainers share: optimizers, attention, types, LoRA. A kind's table names a rule from
// here wherever its key means what transformers' own key means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/keys.h"

namespace shardplan::importing {

/// The job's optimizer for `optim` of transformers (training_args.py, OptimizerNames, 5.17) and of
/// trainers that pass it on; nothing for one that is not estimated.
std::optional<Json> transformers_optimizer(std::string_view name);
/// All names that it knows.
std::vector<std::string> transformers_optimizers();

/// "fp32", "bf16", "fp16" for any of their spellings: "torch.bfloat16", "bfloat16", "float16";
/// "" for others.
std::string dtype_word(std::string_view name);

// Rules.
void read_optimizer(Key& key);   ///< optim
void read_attention(Key& key);   ///< attn_implementation
void take_flash_attn(Key& key);  ///< the package flash-attn 2
/// Of trainers that load models with it where their files say nothing else.
void assume_flash_attn(Recipe& recipe);
void read_weights_dtype(Key& key);    ///< dtype, torch_dtype
void read_mixed_precision(Key& key);  ///< "bf16", "fp16", "no"
void read_bf16(Key& key);             ///< true, false, "auto", "full"
void read_fp16(Key& key);
void read_checkpointing(Key& key);  ///< gradient_checkpointing
void read_clipping(Key& key);       ///< max_grad_norm
void read_model(Key& key);          ///< a name or a folder
void read_compile(Key& key);        ///< torch_compile
void read_liger(Key& key);          ///< use_liger_kernel
void read_deepspeed(Key& key);      ///< a ds_config: a path or an object
void read_lora_rank(Key& key);
void read_lora_targets(Key& key);
void read_rank_stabilized(Key& key);
void read_lora_dropout(Key& key);
void read_dora(Key& key);
void read_target_parameters(Key& key);
void read_saved_modules(Key& key);     ///< modules_to_save
void read_frozen_tower(Key& key);      ///< of a model that reads images
void read_frozen_projector(Key& key);  ///< between that and the text model
void refuse_if_true(Key& key);         ///< a feature that is not estimated
void refuse_if_said(Key& key);
void warn_if_true(Key& key);    ///< a little is not counted
void warn_if_larger(Key& key);  ///< the estimate is more than what runs

/// What linears multiply in, beside computing in bf16; `gathers`: FSDP gathers weights so.
void take_fp8(Key& key, const std::string& recipe, bool gathers);
/// Says so in the job, once its framework is known.
void gather_in_8_bits(Recipe& recipe, std::string_view framework);

/// Trainers that freeze tower and projector unless the files say otherwise.
void freeze_by_default(Recipe& recipe);

/// Frozen base, adapters beside it: makes the recipe one of LoRA.
void make_lora(Recipe& recipe);
/// The base's form: "nf4", "nf4_double", "int8".
void quantize_base(Recipe& recipe, std::string_view form);
void quantize_base(Key& key, std::string_view form);

/// The ds_config at `path`, as transformers and accelerate read it. Throws InputError.
Json ds_config_of_trainer(const std::string& path);
/// Attaches what a ds_config says, "" for `file` where it stands in the document itself.
void attach_ds_config(Key& key, const Json& config, const std::string& file);

}  // namespace shardplan::importing
