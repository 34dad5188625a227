// A verl configuration with what verl's own files say where it is silent, and Hydra's references
// from one key to another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing::verl {

class Config {
 public:
  Config(const Document& document, Recipe& recipe) : document_(document), recipe_(recipe) {}

  /// What the file says; nullptr where it is silent: no key, null, or "???".
  const Json* said(std::string_view path) const;
  std::int64_t integer(std::string_view path, std::int64_t otherwise) const;
  double number(std::string_view path, double otherwise) const;
  bool flag(std::string_view path, bool otherwise) const;
  std::string text(std::string_view path, std::string_view otherwise) const;

  Origin origin(std::string_view path) const;
  /// Remembers that a field of the job came from `path`.
  void came_from(const std::string& pointer, std::string_view path) const;
  [[noreturn]] void refuse(std::string_view path, std::string message, std::string expected) const;

  const Document& document() const { return document_; }
  Recipe& recipe() const { return recipe_; }

 private:
  const Document& document_;
  Recipe& recipe_;
};

// Of a worker under Megatron-LM; `group`: "critic.", ...
Json megatron_framework(const Config& config, std::string_view group);
/// Fields of `parallel`. A reference is cut as the actor where it does not say otherwise.
Json megatron_degrees(const Config& config, std::string_view group);
/// Field `checkpointing`, of override_transformer_config.
Json megatron_checkpointing(const Config& config);

// Of a worker over FSDP; `options`: the path before its options' names.
/// Field `framework`. `gpus`: of all machines, 0 where the file does not say how many.
Json fsdp_framework(const Config& config, const std::string& options, bool second,
                    std::int64_t gpus);
/// Field `precision`: fp32 weights in shards that compute in `dtype`, unless the file says
/// otherwise.
std::string fsdp_precision(const Config& config, const std::string& options);

/// A file or command of verl's supervised trainer.
void read_sft(const Document& document, Recipe& recipe);
/// The same of its trainer of engines (verl.trainer.sft_trainer).
void read_sft_of_engines(const Document& document, Recipe& recipe);
/// The models, the batches and the engine of verl.trainer.main_ppo.
void compose_rl(const Config& config);

}  // namespace shardplan::importing::verl
