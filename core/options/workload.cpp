// The workload of a job: training, adapters, generation.
#include "options/choices.h"
#include "options/limits.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kKindOptions{
    option<&Workload::kind>({.key = "kind",
                             .flag = "--kind",
                             .help = "what the job does",
                             .doc = "what the job does: train, "
                                    "[generate](#workloads-of-kind-inference) "
                                    "or [rlhf](../explanation/rlhf.md)",
                             .label = "Task",
                             .choices = kWorkKinds}),
    option<&Workload::tokens>({.key = "tokens",
                               .flag = "--tokens",
                               .also = "--train-tokens --total-tokens",
                               .help = "of the whole run, for its days and money: 1.5e12, 15T",
                               .default_text = "no run: a billion tokens are priced",
                               .numbers = {.least = 1, .most = 1e21}}),
};

constexpr std::array kTrainingOptions{
    option<&Workload::micro_batch>({.key = "micro_batch",
                                    .flag = "--micro-batch",
                                    .also = "--batch-size --micro-batch-size --mbs "
                                            "--per-device-train-batch-size "
                                            "--train-micro-batch-size-per-gpu",
                                    .help = "samples a GPU takes at once",
                                    .label = "Micro-batch",
                                    .default_text = "the ds_config's, else 1",
                                    .integers = {1, kLargestCount},
                                    .changes_passes = true}),
    option<&Workload::sequence_length>({.key = "sequence_length",
                                        .flag = "--sequence-length",
                                        .also = "--seq-len --seqlen --seq-length --seq "
                                                "--max-seq-len --max-seq-length --max-length "
                                                "--cutoff-len --context-length --sequence-len",
                                        .help = "tokens of a sample",
                                        .label = "Sequence length",
                                        .default_text = "2,048, or the model's positions if fewer",
                                        .integers = {1, kLargestCount},
                                        .magnitude = Magnitude::length,
                                        .changes_passes = true}),
    special<Workload>({.key = "lengths",
                       .flag = "--lengths",
                       .help = "lengths of samples: a file with one a line, or mean,p95,max",
                       .doc = "lengths of samples: `{\"mean\", \"p95\", \"max\"}`, or a file "
                              "with one a line ([lengths](#lengths))",
                       .default_text = "all `sequence_length`",
                       .kind = OptionKind::text}),
    option<&Workload::packing>({.key = "packing",
                                .flag = "--packing",
                                .help = "samples are joined to rows of sequence_length tokens"}),
    option<&Workload::target_length>({.key = "target_length",
                                      .flag = "--target-length",
                                      .also = "--max-target-length",
                                      .help = "decoder tokens (encoder-decoder models)",
                                      .doc = "decoder tokens (encoder-decoder models), or labels "
                                             "that a sequence has (CTC)",
                                      .default_text = "`sequence_length`",
                                      .integers = {1, kLargestCount},
                                      .magnitude = Magnitude::length,
                                      .changes_passes = true}),
    option<&Workload::images, &ImageWork::per_sample>(
        {.key = "images",
         .flag = "--images",
         .also = "--images-per-sample",
         .help = "images of a sample (networks that read images)",
         .integers = {0, kLargestCount},
         .changes_passes = true}),
    option<&Workload::images, &ImageWork::tokens>(
        {.key = "image_tokens",
         .flag = "--image-tokens",
         .help = "tokens of the sequence that an image takes",
         .doc = "tokens of the sequence that an image takes; networks that see images of one size "
                "fix it",
         .default_text = "the most that the network's processor makes",
         .integers = {1, kLargestCount},
         .magnitude = Magnitude::length,
         .changes_passes = true}),
    option<&Workload::images, &ImageWork::frozen>(
        {.key = "frozen",
         .flag = "--frozen",
         .switches = "--freeze-vision-tower=tower --freeze-vit=tower",
         .help = "parts before the text model that do not train",
         .doc = "parts before the text model that do not train and carry no adapters: most recipes "
                "freeze the tower (of sounds the feature encoder), but nothing is frozen unless "
                "the loop says so",
         .choices = kFrozenParts,
         .changes_passes = true}),
    option<&Workload::gradient_accumulation>({.key = "gradient_accumulation",
                                              .flag = "--gradient-accumulation",
                                              .also = "--gradient-accumulation-steps "
                                                      "--grad-accum --grad-accumulation --gas",
                                              .help = "micro-batches per step",
                                              .label = "Accumulation steps",
                                              .default_text = "the ds_config's, else 1",
                                              .integers = {1, kLargestCount}}),
    special<Workload>(
        {.key = "method",
         .flag = "--method",
         .also = "--finetuning-type --train-type",
         .switches = "--lora=lora --qlora=qlora --use-peft=lora",
         .help = "which parameters are trained",
         .doc = "which parameters are trained (qlora: LoRA over a base in `nf4_double`)",
         .label = "Method",
         .kind = OptionKind::choice,
         .choices = kMethods},
        {.get = [](const Workload& w) -> OptionValue { return std::int64_t{w.lora.has_value()}; }}),
};

/// peft's default for most decoders; a job's loader knows its network's.
OptionValue usual_targets(const Workload&) {
  return std::vector<std::string>{"q_proj", "v_proj"};
}

constexpr std::array kLoraOptions{
    option<&Workload::lora, &Lora::rank>({.key = "rank",
                                          .flag = "--lora-rank",
                                          .also = "--lora-r --r",
                                          .help = "rank of the adapters",
                                          .label = "LoRA rank",
                                          .integers = {1, 1 << 20}}),
    option<&Workload::lora, &Lora::targets>({.key = "targets",
                                             .flag = "--lora-targets",
                                             .also = "--target-modules --lora-target "
                                                     "--lora-target-modules",
                                             .help = "modules, such as q_proj,v_proj",
                                             .doc = "last parts of module names, or `all-linear` "
                                                    "alone: every linear layer but the head, and "
                                                    "experts where peft takes them",
                                             .default_text = "peft's for the model's type, else "
                                                             "`q_proj`, `v_proj`",
                                             .elements = "module names"},
                                            {.open = usual_targets}),
    option<&Workload::lora, &Lora::base>({.key = "quantization",
                                          .flag = "--lora-quantization",
                                          .also = "--quantization-bit --bits",
                                          .switches = "--load-in-4bit=4bit --load-in-8bit=8bit",
                                          .help = "the base's weights in 4 bits (QLoRA) or 8",
                                          .choices = kBaseFormats}),
    option<&Workload::lora, &Lora::base_of_experts>(
        {.key = "quantize_experts",
         .flag = "--quantize-experts",
         .also = "--quantize-moe-experts",
         .help = "weights of experts are quantized too",
         .doc = "weights of experts are stored so too, as Axolotl's `quantize_moe_experts` does "
                "with bitsandbytes' `replace_parameter_4bit`; transformers quantizes linear layers "
                "alone"}),
    option<&Workload::lora, &Lora::prepare_kbit>(
        {.key = "prepare_kbit",
         .flag = "--prepare-kbit",
         .help = "peft's k-bit preparation: what is not quantized becomes fp32",
         .doc = "peft's `prepare_model_for_kbit_training`: parameters of 16 bits that are not "
                "quantized (embeddings, head, norms) become fp32",
         .default_text = "what the trainer does"}),
    option<&Workload::lora, &Lora::rank_stabilized>(
        {.key = "rank_stabilized",
         .flag = "--lora-rank-stabilized",
         .help = "peft's use_rslora: another factor, which costs nothing",
         .doc =
             "peft's `use_rslora`: the adapters' factor grows with the root of the rank; neither "
             "memory nor time change"}),
    option<&Workload::lora, &Lora::dropout>(
        {.key = "dropout",
         .flag = "--lora-dropout",
         .help = "share of its input that an adapter drops",
         .doc =
             "share of its input that an adapter drops: a mask and what is left of the input are "
             "kept for each adapted layer",
         .numbers = {0, 0.999}}),
    option<&Workload::lora, &Lora::magnitudes>(
        {.key = "dora",
         .flag = "--dora",
         .also = "--use-dora",
         .help = "peft's use_dora: a trained length for each row of an adapted weight",
         .doc = "peft's `use_dora`: a trained length for each row of an adapted weight, which is "
                "put together in each pass"}),
    option<&Workload::lora, &Lora::saved>(
        {.key = "modules_to_save",
         .flag = "--modules-to-save",
         .also = "--lora-modules-to-save --additional-target",
         .help = "modules that train as copies, such as embed_tokens,lm_head",
         .doc = "peft's `modules_to_save`: modules that train as whole copies beside their "
                "originals, by the ends of their names; heads of classes for sequences and tokens "
                "always do",
         .default_text = "none",
         .elements = "module names"}),
    option<&Workload::lora, &Lora::parameters>(
        {.key = "target_parameters",
         .flag = "--target-parameters",
         .also = "--lora-target-parameters",
         .help = "weights of experts that are adapted, such as experts.down_proj",
         .doc = "peft's `target_parameters`: weights of experts that are adapted, by the ends of "
                "their names (with `\"targets\": []` nothing else is); each pass of peft makes a "
                "whole copy of them with the adapters added, the native engine none",
         .default_text = "none",
         .elements = "names of parameters"}),
    option<&Workload::lora, &Lora::whole>(
        {.key = "train_whole",
         .flag = "--train-whole",
         .help = "parts of module names that train as they are, such as visual",
         .doc = "parts of module names (`visual`): what is in them trains as it is, without "
                "adapters, as ms-swift's `lora_llm` has it of a tower",
         .default_text = "none",
         .elements = "parts of module names"}),
    option<&Workload::lora, &Lora::rotation_block>(
        {.key = "oft_block_size",
         .flag = "--oft-block-size",
         .help = "OFT in place of LoRA: the input of adapted layers turned in blocks so wide",
         .doc = "peft's OFT in place of LoRA: the input of each adapted layer is turned in blocks "
                "of so many numbers",
         .default_text = "none",
         .integers = {0, 1 << 20}}),
    option<&Workload::lora, &Lora::saved_in_fp32>(
        {.key = "saved_in_fp32",
         .flag = "--saved-in-fp32",
         .help = "the copies of modules_to_save are cast to fp32",
         .doc = "the copies of `modules_to_save` are cast to fp32, as LLaMA-Factory does"}),
};

constexpr std::array kGenerationOptions{
    option<&Workload::micro_batch>({.key = "batch",
                                    .flag = "--batch",
                                    .also = "--concurrency --concurrent-sequences",
                                    .help = "sequences at once",
                                    .label = "Sequences",
                                    .integers = {1, kLargestCount}}),
    option<&Workload::sequence_length>(
        {.key = "prompt_length",
         .flag = "--prompt-length",
         .also = "--prompt-len --input-len --input-length",
         .help = "tokens of a prompt",
         .label = "Prompt length",
         .default_text = "2,048, or what the model's positions leave",
         .integers = {1, kLargestCount},
         .magnitude = Magnitude::length}),
    option<&Workload::generation, &Generation::new_tokens>(
        {.key = "new_tokens",
         .flag = "--new-tokens",
         .also = "--max-new-tokens --output-len --output-length",
         .help = "tokens to generate for each prompt",
         .label = "New tokens",
         .integers = {1, kLargestCount},
         .magnitude = Magnitude::length}),
    option<&Workload::generation, &Generation::weights>({.key = "quantization",
                                                         .flag = "--quantization",
                                                         .help = "how weights are stored",
                                                         .label = "Weights",
                                                         .choices = kWeightFormats}),
    option<&Workload::generation, &Generation::fp8_cache>(
        {.key = "kv_cache_dtype",
         .flag = "--kv-cache-dtype",
         .help = "type of keys and values, as computed (auto)",
         .label = "KV cache",
         .choices = kCacheTypes}),
    option<&Workload::generation, &Generation::shared_prefix>(
        {.key = "shared_prefix",
         .flag = "--shared-prefix",
         .help = "of an engine: tokens at the begin of every prompt that are the same",
         .integers = {0, kLargestCount},
         .magnitude = Magnitude::length}),
    special<Workload>({.key = "engine",
                       .help = "an engine that serves, as below",
                       .default_text = "the framework's own loop",
                       .kind = OptionKind::block}),
};

}  // namespace

const OptionTable<Workload>& kind_option_table() {
  static constexpr OptionTable<Workload> kTable{"workload", "", kKindOptions};
  return kTable;
}

const OptionTable<Workload>& training_table() {
  static constexpr OptionTable<Workload> kTable{"workload", "", kTrainingOptions};
  return kTable;
}

const OptionTable<Workload>& lora_table() {
  static constexpr OptionTable<Workload> kTable{"workload.lora", "LoRA", kLoraOptions};
  return kTable;
}

const OptionTable<Workload>& generation_table() {
  static constexpr OptionTable<Workload> kTable{"workload", "inference", kGenerationOptions};
  return kTable;
}

}  // namespace shardplan
