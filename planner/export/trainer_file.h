// A plan in the words that trainers on transformers share; each trainer's file has the rest.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "export/export.h"

namespace shardplan {

/// For what a trainer's file cannot say.
[[noreturn]] void refuse_export(std::string key, Said message, Said expected);

/// The first key of `object` that is not among `said` is refused.
void refuse_more(const Json& object, std::string_view path, std::span<const std::string_view> said,
                 const char* message);

/// The name or path of a job's model, which a file of `trainer` names.
std::string named_model(const Json& asked, std::string_view trainer);

/// attn_implementation of transformers: "eager", "sdpa" or "flash_attention_2", or a trainer's own
/// words for the first and the last. Which kernel PyTorch takes is refused.
std::string_view attention_word(const Plan& plan, std::string_view eager = "eager",
                                std::string_view flash_attn = "flash_attention_2");
/// Of trainers that do not call flash-attn 2.
void refuse_flash_attn(const Plan& plan, std::string_view trainer);

/// What it says of checkpointing.
enum class CheckpointWords : std::uint8_t {
  arguments,  ///< gradient_checkpointing and its kwargs
  switched,   ///< gradient_checkpointing alone
  disabling,  ///< disable_gradient_checkpointing
};

/// How one trainer spells what all have; "" for what it has not.
struct Dialect {
  std::string_view name;  ///< for people
  std::string_view model = "model_name_or_path";
  std::string_view micro_batch = "per_device_train_batch_size";
  std::string_view length = "max_length";
  std::string_view packing = "packing";
  std::string_view optimizer = "optim";
  std::string_view liger = "use_liger_kernel";
  std::string_view attention = "attn_implementation";
  std::string_view eager = "eager";  ///< what attention is called that keeps scores
  std::string_view flash_attn = "flash_attention_2";
  std::string_view rank = "lora_r";
  std::string_view targets = "lora_target_modules";
  std::string_view saved = "lora_modules_to_save";
  std::string_view rank_stabilized = "use_rslora";
  std::string_view dora = "use_dora";
  std::string_view all_linear = "all-linear";       ///< "": a switch of its own
  std::string_view frozen_tower, frozen_projector;  ///< keys; "": parts are never frozen
  CheckpointWords checkpoints = CheckpointWords::arguments;
  bool fused_loss = false;      ///< cut_cross_entropy
  std::string_view tiles = {};  ///< feed-forwards over parts of the sequence; "": it has none
  /// Keys of what autograd keeps on the host; null: a kwarg of checkpointing says it.
  Json (*offloads)(const Plan& plan) = nullptr;
  bool fp8 = false;              ///< torchao's linears
  bool image_switch = false;     ///< samples have images where a processor is named
  bool kernel_switches = false;  ///< a switch for each of Liger's kernels
  bool kernel_lists = true;      ///< liger_kernel_config
  bool casts_copies = false;     ///< modules_to_save become fp32
};

/// The file of one plan, key by key. What the dialect cannot say throws InputError.
class TrainerFile {
 public:
  TrainerFile(const Dialect& dialect, const Json& asked, const Job& job, const Estimate& e);

  /// What all trainers have.
  void common();
  Json take() { return std::move(file_); }
  void erase(std::string_view key) { file_.erase(std::string(key)); }
  void put(std::string_view key, Json value) { file_[std::string(key)] = std::move(value); }

  const Plan& plan() const;
  bool lora() const;
  bool has_zero() const;
  bool shards_parameters() const;
  /// "bf16", "fp16" or "" of the preset, and what stands behind it: "pure".
  std::string half() const;
  std::string_view style() const;
  [[noreturn]] void no_precision(std::string_view why) const;
  /// bf16 and fp16.
  void precision_switches();

  /// FSDP's options as accelerate's file has them; null under others.
  Json fsdp_block() const;
  /// 1 or 2; 0 under others.
  int fsdp_version() const;
  /// The ds_config of a plan under DeepSpeed.
  Json ds_config() const;
  /// The ds_config inside the file, or fsdp_block.
  void distribution(bool fsdp_switch);
  void lora_keys();
  /// How the base of adapters is stored: "none", "nf4_double".
  std::string_view base() const;

 private:
  void workload();
  void images();
  void optimizer();
  void tiles();
  void checkpointing();
  void kernels();
  void compile();
  void narrow_linears();
  void kernel_list();
  void liger_switches();

  const Dialect& dialect_;
  const Json& asked_;
  const Job& job_;
  const Estimate& estimate_;
  Json file_ = Json::object();
};

}  // namespace shardplan
