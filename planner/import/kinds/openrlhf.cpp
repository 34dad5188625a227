// OpenRLHF's launch scripts (3c3be623, v0.11.0, and versions before 0.10.2, whose arguments have no
// groups: openrlhf/cli): reinforcement learning with Ray and vLLM, and training of one model.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "import/kinds/kind.h"
#include "import/kinds/openrlhf_flags.h"
#include "import/preference.h"
#include "import/vocabulary.h"

namespace shardplan::importing::openrlhf {
namespace {

bool is_openrlhf(const Document& d) {
  if (!d.is_command()) return false;
  // Its other programs train nothing.
  if (d.program.starts_with("openrlhf.")) return d.program.starts_with("openrlhf.cli.train_");
  return has_any(d, {"actor.model_name_or_path", "model.model_name_or_path"}) ||
         has_all(d, {"pretrain", "micro_train_batch_size"});
}

/// Its value is read with those of other arguments.
void read_with_others(Key&) {}

void read_flash(Key& key) {
  if (!key.flag()) return key.ignore("off");
  take_flash_attn(key);
}

void read_images(Key& key) {
  if (key.integer(0) == 0) {
    key.recipe().texts = true;
    return key.took("workload.images: 0, if the model reads images");
  }
  key.took("");
}

/// models/actor.py: all but the language model and its head.
void read_frozen(Key& key) {
  key.recipe().frozen_projector = key.flag();
  read_frozen_tower(key);
}

/// How weights go to engines decides no bytes on the trainer's GPU.
void read_backend(Key& key) {
  const std::string name = key.text();
  if (name != "nccl" && name != "gloo") key.refuse(fmt::format("found '{}'", name), "nccl or gloo");
  key.ignore("the exchange takes as many bytes");
}

/// At most max_len tokens of a sample either way.
void read_packing(Key& key) {
  key.ignore("samples without padding: at most as many tokens as are estimated");
}

struct OwnRule {
  std::string_view name;
  ReadKey read;
};
constexpr std::array kOwnRules{OwnRule{"pretrain", read_model},
                               OwnRule{"attn_implementation", read_attention},
                               OwnRule{"flash_attn", read_flash},
                               OwnRule{"use_liger_kernel", read_liger},
                               OwnRule{"deepcompile", warn_if_true},
                               OwnRule{"packing_samples", read_packing},
                               OwnRule{"vllm_sync_backend", read_backend},
                               OwnRule{"max_images_per_prompt", read_images},
                               OwnRule{"freeze_visual_encoder", read_frozen}};

ReadKey rule_of(std::string_view name) {
  const auto own = std::ranges::find(kOwnRules, name, &OwnRule::name);
  return own == kOwnRules.end() ? read_with_others : own->read;
}

const std::vector<KeyRule>& all_rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all;
    for (const Flag& flag : flags())
      for (const std::string_view key : {flag.name, flag.grouped, flag.of_model})
        if (!key.empty()) all.push_back({key, "", rule_of(flag.name)});
    return all;
  }();
  return kAll;
}

/// A program of one model that trains: its algorithm, "" for supervised training, and its defaults.
struct Program {
  std::string_view name;
  std::string_view algorithm;
  std::int64_t length;
  std::int64_t micro_batch;
};
constexpr std::array kPrograms{
    Program{"train_sft", "", 2048, 8}, Program{"train_dpo", "dpo", 512, 8},
    Program{"train_rm", "reward", 512, 1}, Program{"train_kto", "kto", 512, 8}};

void compose_one(const Flags& f, const Program& program) {
  Recipe& recipe = f.recipe();
  recipe.global_batch = f.integer("train_batch_size", 128);
  recipe.set("/workload/micro_batch", f.integer("micro_train_batch_size", program.micro_batch),
             f.origin("micro_train_batch_size"));
  recipe.set("/workload/sequence_length", f.integer("max_len", program.length),
             f.origin("max_len"));
  recipe.texts = true;
  if (const std::int64_t ranks = f.integer("ds_tensor_parallel_size", 1); ranks > 1)
    recipe.set("/parallel/tensor", ranks, f.origin("ds_tensor_parallel_size"));
  if (program.algorithm.empty()) return;
  recipe.take_algorithm(std::string(program.algorithm), f.origin("pretrain"));
  const bool frozen = program.algorithm != "reward";
  if (Json role = frozen ? frozen_role(f, "ref_offload") : Json::object(); !role.empty())
    recipe.rlhf["models"]["reference"] = std::move(role);
}

void read(const Document& d, Recipe& recipe) {
  const Flags f(d, recipe);
  const std::string program = f.program();
  const auto one = std::ranges::find(kPrograms, program, &Program::name);
  const bool several = program == "train_ppo_ray";
  if (one == kPrograms.end() && !several) {
    throw InputError({.file = d.file,
                      .key = d.program,
                      .message = "this program of OpenRLHF's is not read",
                      .expected = "train_ppo_ray, train_sft, train_dpo, train_rm or train_kto"});
  }
  const KeyTable own{all_rules(), ignored_flags()};
  read_keys(d, {&own}, recipe);
  compose_engine(f);
  several ? compose_rl(f) : compose_one(f, *one);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"openrlhf", "an OpenRLHF command", is_openrlhf, read};

}  // namespace shardplan::importing::openrlhf
