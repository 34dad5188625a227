// A job's own keys.
#include <algorithm>

#include "kernels/registry.h"
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

std::vector<NamedValue> named_trainers() {
  std::vector<NamedValue> names;
  for (const TrainerDescription* t : trainers())
    names.push_back(spoken(named(t->name, names.size(), t->words), t->spoken));
  return names;
}

Option<Plan> trainer_option(std::span<const NamedValue> names) {
  return {{.key = "trainer",
           .flag = "--trainer",
           .help = "the program that runs the steps",
           .doc = "the program that runs the steps, and what it does on its own "
                  "([trainers](../explanation/memory.md#trainers))",
           .kind = OptionKind::choice,
           .choices = names,
           .changes_passes = true},
          {.get = [](const Plan& p) -> OptionValue {
             return std::ranges::find(trainers(), p.trainer) - trainers().begin();
           },
           .set =
               [](Plan& p, const OptionValue& place) {
                 p.trainer = trainers()[static_cast<std::size_t>(std::get<std::int64_t>(place))];
               }},
          {.written = [](const Plan& p) { return p.trainer != &default_trainer(); }}};
}

constexpr std::string_view kPlainKernels = "torch", kPatchedKernels = "liger";

std::vector<NamedValue> named_kernels() {
  std::vector<NamedValue> names{named(kPlainKernels, 0), named(kPatchedKernels, 1)};
  for (const FusedKernel* k : fused_kernels()) names.push_back(named(k->name, names.size()));
  return names;
}

OptionValue kernels_of_plan(const Plan& p) {
  if (!p.kernels.any()) return std::string(kPlainKernels);
  if (p.kernels.patches) return std::string(kPatchedKernels);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    if ((p.kernels.names >> i & 1U) != 0) names.emplace_back(fused_kernels()[i]->name);
  return names;
}

void set_kernels(Plan& p, const OptionValue& value) {
  p.kernels = {};
  for (const std::string& name : std::get<std::vector<std::string>>(value)) {
    p.kernels.patches = p.kernels.patches || name == kPatchedKernels;
    for (std::size_t i = 0; i < kKernelNames; ++i)
      if (fused_kernels()[i]->name == name) p.kernels.names |= 1U << i;
  }
}

Option<Plan> kernels_option(std::span<const NamedValue> names) {
  return {{.key = "kernels",
           .flag = "--kernels",
           .switches = "--use-liger-kernel=liger --liger=liger",
           .help = "fused kernels in place of PyTorch's",
           .doc = "fused kernels in place of PyTorch's: what Liger-Kernel patches for the model's "
                  "type, or a list of names",
           .default_text = "`torch`",
           .elements = "names of kernels",
           .kind = OptionKind::texts,
           .choices = names},
          {.get = kernels_of_plan, .set = set_kernels},
          {.written = [](const Plan& p) { return p.kernels.any(); }}};
}

constexpr std::array kPlainOptions{
    special<Plan>({.key = "model",
                   .flag = "--model",
                   .also = "--model-name-or-path --model-path --base-model",
                   .help = "catalogue name, config.json or a size such as 7B",
                   .required = true}),
    special<Plan>({.key = "cluster",
                   .flag = "--cluster",
                   .also = "--gpus --gpu --hardware",
                   .help = "4xA100-40GB, 2x8xH100, 4x40GB, an instance name",
                   .required = true}),
    option<&Plan::attention>(
        {.key = "attention",
         .flag = "--attention",
         .also = "--attn --attn-implementation --attn-impl --flash-attn",
         .switches = "--use-flash-attn=sdpa --use-flash-attention-2=flash_attention_2",
         .help = "fused (sdpa), or eager, which keeps the scores",
         .doc = "fused (sdpa), or eager, which keeps s × s scores",
         .label = "Attention",
         .choices = kAttentionKinds}),
    option<&Plan::sdpa_kernel>(
        {.key = "sdpa_kernel",
         .flag = "--sdpa-kernel",
         .also = "--sdpa-backend",
         .help = "whose kernel fused attention is: PyTorch's (cuDNN's or FlashAttention-2), or "
                 "flash_attn, the package",
         .doc =
             "whose kernel fused attention is. PyTorch's scaled_dot_product_attention takes "
             "cuDNN's on Hopper from 2.11 on and FlashAttention-2 from 2.5.1 to 2.10, which "
             "differ in time alone. `flash_attn` is the package flash-attn 2 "
             "(`attn_implementation: flash_attention_2`): no masks of sliding windows in memory, "
             "bf16 and fp16 alone, NVIDIA's Ampere or newer "
             "([flash-attn 2](../explanation/memory.md#flash-attn-2))",
         .label = "Kernel of attention",
         .choices = kSdpaKernels,
         .changes_passes = true}),
    option<&Plan::state_kernels>(
        {.key = "state_kernels",
         .flag = "--state-kernels",
         .also = "--mamba-kernels --fla",
         .help = "what runs layers with a state: PyTorch, or mamba_ssm, causal_conv1d and fla",
         .doc = "what runs state spaces and gated delta nets: PyTorch's own operations, or the "
                "kernels of mamba_ssm, causal_conv1d and flash-linear-attention, which "
                "transformers takes where they are installed",
         .choices = kStateKernels,
         .changes_passes = true}),
    special<Plan>(
        {.key = "checkpointing",
         .flag = "--checkpointing",
         .also = "--activation-checkpointing --recompute --ac",
         .switches = "--gradient-checkpointing=full --no-gradient-checkpointing=none",
         .help = "what is computed again in the backward pass (full: every block)",
         .doc = "what is computed again in the backward pass: nothing, everything but what matrix "
                "products and attention return, or each block; or a policy with numbers "
                "([checkpointing](#checkpointing))",
         .label = "Checkpointing",
         .default_text = "`none` in a job; **`full`** where a model and flags say it, as for `fit`",
         .kind = OptionKind::choice,
         .choices = kCheckpointings,
         .changes_passes = true},
        {.get = [](const Plan& p) -> OptionValue {
          return static_cast<std::int64_t>(p.checkpointing);
        }}),
    option<&Plan::activation_offloading>(
        {.key = "activation_offloading",
         .flag = "--activation-offloading",
         .also = "--enable-activation-offloading",
         .help = "what autograd keeps waits on the host, copied beside the step",
         .doc = "hooks around the whole step move what autograd keeps to the host and back (TRL, "
                "torchtune, axolotl): beside the step, or within it "
                "([activations on the host](../explanation/memory.md#activations-on-the-host))",
         .choices = kActivationOffloadings,
         .changes_passes = true}),
    option<&Plan::mlp_tiles>(
        {.key = "mlp_tiles",
         .flag = "--mlp-tiles",
         .also = "--tiled-mlp-num-shards",
         .help = "feed-forwards run over so many parts of the sequence, and again backward",
         .doc = "feed-forwards run over so many parts of the sequence, one after the other, and "
                "again in the backward pass (ALST's TiledMLP; "
                "[tiled feed-forwards](../explanation/memory.md#tiled-feed-forwards)); 0: as they "
                "are",
         .integers = {0, 1 << 20},
         .changes_passes = true}),
    special<Plan>({.key = "compile",
                   .flag = "--compile",
                   .also = "--torch-compile",
                   .help = "torch.compile with Inductor",
                   .doc = "torch.compile with Inductor: false, true, or an object "
                          "([compile](#compile))",
                   .kind = OptionKind::boolean},
                  {.get = [](const Plan& p) -> OptionValue { return p.compile.has_value(); }}),
    option<&Plan::loss>(
        {.key = "loss",
         .flag = "--loss",
         .help = "whole logits, or in chunks with the head",
         .doc =
             "over the whole logits, with the head in chunks, as Liger does, or both over parts of "
             "the rows (`tiled`; [its memory](../explanation/memory.md#logits-and-loss))",
         .label = "Loss",
         .choices = kLossKinds}),
    option<&Plan::gradient_clipping>({.key = "gradient_clipping",
                                      .flag = "--gradient-clipping",
                                      .also = "--max-grad-norm --clip --clip-grad --grad-clip",
                                      .help = "largest norm of the gradients; 0 is off",
                                      .numbers = {0, 1e12}}),
    option<&Plan::launch_blocking>(
        {.key = "launch_blocking",
         .flag = "--launch-blocking",
         .help = "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel",
         .changes_passes = true}),
    special<Plan>({.key = "model.mlp",
                   .flag = "--mlp",
                   .help = "widths of a perceptron in place of a model: 784,128,10",
                   .default_text = "none",
                   .elements = "widths",
                   .kind = OptionKind::integers}),
};

/// The trainer and its kernels come behind model and cluster.
std::vector<Option<Plan>> job_options() {
  static const std::vector<NamedValue> kTrainerNames = named_trainers();
  static const std::vector<NamedValue> kKernelChoices = named_kernels();
  std::vector<Option<Plan>> options(kPlainOptions.begin(), kPlainOptions.end());
  const auto behind_cluster = options.begin() + 2;
  options.insert(behind_cluster, {trainer_option(kTrainerNames), kernels_option(kKernelChoices)});
  return options;
}

}  // namespace

const OptionTable<Plan>& job_option_table() {
  static const std::vector<Option<Plan>> kOptions = job_options();
  static const OptionTable<Plan> kTable{"", "", kOptions};
  return kTable;
}

}  // namespace shardplan
