// A plan as arguments of a program with Hugging Face's TrainingArguments (transformers 5.17) and
// TRL's ModelConfig (1.16). What neither has a word for is a comment that says whose it is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "export/optimizer_words.h"
#include "formats/product_recipe.h"
#include "frameworks/registry.h"
#include "frameworks/usual_planning.h"
#include "kernels/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "options/tables.h"
#include "save/checkpointing.h"
#include "save/options.h"

namespace shardplan::usual {
namespace {

/// All that Liger patches for the model, or those of the list alone.
std::string liger_arguments(const KernelRequest& kernels) {
  std::string text = "--use_liger_kernel true";
  if (kernels.patches) return text;
  Json chosen;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    chosen[std::string(fused_kernels()[i]->name)] = (kernels.names >> i & 1U) != 0;
  return text + fmt::format(" --liger_kernel_config '{}'", chosen.dump());
}

/// What TrainingArguments say of checkpointing (transformers 5.17, gradient_checkpointing_kwargs).
/// Blocks by number and operations are for the program to choose.
std::vector<std::string> checkpointing_arguments(const Plan& plan) {
  const CheckpointShare& share = plan.checkpoint_share;
  const bool each_nth = plan.keeps_some_blocks() && share.every > 0;
  if (plan.checkpointing != Checkpointing::full && !each_nth) {
    if (plan.checkpointing == Checkpointing::none && share == CheckpointShare{}) return {};
    return {fmt::format("# checkpointing {}: the program's to set, TrainingArguments cannot",
                        checkpointing_word(plan.checkpoint_choice()))};
  }
  std::vector<std::string> lines{"--gradient_checkpointing true"};
  std::string more;
  if (each_nth) more += fmt::format(", \"every_n_layers\": {}", share.every);
  if (share.offload) more += ", \"offload\": true";
  if (!more.empty())
    lines.push_back(
        fmt::format("--gradient_checkpointing_kwargs '{{\"use_reentrant\": false{}}}'", more));
  return lines;
}

/// DeepSpeed's is in the ds_config.
std::string optimizer_argument(const Plan& plan) {
  const std::string_view word = transformers_optimizer(plan);
  if (!word.empty()) return fmt::format("--optim {}", word);
  return fmt::format("# optimizer {} ({}): the program's to make", plan.optimizer.kind->name,
                     name_of(plan.optimizer.implementation));
}

std::vector<std::string> compile_arguments(const Plan& plan) {
  if (!plan.compile) return {};
  std::vector<std::string> lines{"--torch_compile true"};
  Json said;
  write_options(said, compile_table(), plan);
  if (plan.compile->mode != CompileMode::usual)
    lines.push_back(fmt::format("--torch_compile_mode {}", said.at("mode").get<std::string>()));
  if (!plan.compiles_whole())
    lines.push_back("# block by block: dynamo_use_regional_compilation in accelerate.yaml");
  return lines;
}

std::vector<std::string> adapter_arguments(const Lora& lora) {
  std::vector<std::string> lines{
      "# adapters are of TRL's ModelConfig; elsewhere peft's LoraConfig has them",
      fmt::format("--use_peft true --lora_r {} --lora_dropout {}", lora.rank, lora.dropout),
      fmt::format("--lora_target_modules {}", fmt::join(lora.targets, " "))};
  if (!lora.saved.empty())
    lines.push_back(fmt::format("--lora_modules_to_save {}", fmt::join(lora.saved, " ")));
  if (lora.rank_stabilized) lines.push_back("--use_rslora true");
  if (lora.magnitudes) lines.push_back("--use_dora true");
  if (lora.rotation_block > 0)
    lines.push_back(fmt::format("# OFT in blocks of {} in LoRA's place: peft's OFTConfig",
                                lora.rotation_block));
  const std::string_view base = name_of(lora.base);
  if (base == "int8") lines.push_back("--load_in_8bit true");
  if (base.find('4') != base.npos)
    lines.push_back(
        fmt::format("--load_in_4bit true --bnb_4bit_quant_type {} --use_bnb_nested_quant {}",
                    base.substr(0, 3), base.ends_with("_double")));
  return lines;
}

/// What the model is loaded as and made of.
std::vector<std::string> model_arguments(const Plan& plan) {
  std::vector<std::string> lines;
  const DType params = plan.precision.params;
  if (!traits_of(plan).has_zero)
    lines.push_back(fmt::format("--dtype {}", params == DType::bf16  ? "bfloat16"
                                              : params == DType::f16 ? "float16"
                                                                     : "float32"));
  if (plan.attention == AttentionKind::eager) lines.push_back("--attn_implementation eager");
  if (plan.calls_flash_attn()) lines.push_back("--attn_implementation flash_attention_2");
  if (plan.precision.linear != LinearRecipe::computed)
    lines.push_back(fmt::format("# linears in {}: accelerate.yaml's fp8_config, or the program's",
                                name_of(plan.precision.linear)));
  return lines;
}

}  // namespace

std::string trainer_arguments(const Plan& plan, DType type, std::string_view more) {
  const Workload& w = plan.workload;
  std::string text = "arguments=( # as TrainingArguments of Hugging Face have them\n";
  const auto add = [&](std::string line) { text += "  " + std::move(line) + "\n"; };
  add(fmt::format("--per_device_train_batch_size {}", w.micro_batch));
  add(fmt::format("--gradient_accumulation_steps {}", w.gradient_accumulation));
  add(fmt::format("--max_grad_norm {}", plan.gradient_clipping));
  if (type == DType::bf16) add("--bf16 true");
  if (type == DType::f16) add("--fp16 true");
  const auto add_all = [&](std::vector<std::string> lines) {
    for (std::string& line : lines) add(std::move(line));
  };
  add_all(model_arguments(plan));
  add(fmt::format(
      "# sequences of {} tokens: max_length of TRL's SFTConfig, block_size of run_clm.py",
      w.sequence_length));
  if (w.packing) add("--packing true  # of TRL's SFTConfig");
  if (!traits_of(plan).has_zero) add(optimizer_argument(plan));
  if (w.lora) add_all(adapter_arguments(*w.lora));
  add_all(checkpointing_arguments(plan));
  if (plan.activation_offloading != ActivationOffloading::none)
    add(plan.activation_offloading == ActivationOffloading::streams
            ? "--activation_offloading true  # of TRL's trainers: SFTConfig, DPOConfig"
            : "# activation offloading without streams: OffloadActivations(use_streams=False) "
              "around "
              "the step");
  if (plan.mlp_tiles > 0)
    add(fmt::format("# feed-forwards in {} parts: DeepSpeed's TiledMLP in the model's place",
                    plan.mlp_tiles));
  if (plan.loss == LossKind::tiled)
    add("# the loss over parts of the rows: DeepSpeed's TiledFusedLogitsLoss around lm_head");
  if (plan.kernels.any()) add(liger_arguments(plan.kernels));
  if (plan.loss == LossKind::fused_linear)
    add("# the head and its loss in one: cut_cross_entropy or a loss of the program's own");
  add_all(compile_arguments(plan));
  if (!more.empty()) add(std::string(more));
  return text + ")\n";
}

}  // namespace shardplan::usual
