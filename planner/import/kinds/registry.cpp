#include <algorithm>
#include <array>

#include "import/kinds/kind.h"

namespace shardplan::importing {

// A line here and a row below for each; its file has the rest.
namespace accelerate {
extern const Kind kKind;
}
namespace axolotl {
extern const Kind kKind;
}
namespace ds_config {
extern const Kind kKind;
}
namespace hf_config {
extern const Kind kKind;
}
namespace hostfile {
extern const Kind kKind;
}
namespace launcher {
extern const Kind kKind;
}
namespace llamafactory {
extern const Kind kKind;
}
namespace llm_foundry {
extern const Kind kKind;
}
namespace megatron {
extern const Kind kKind;
}
namespace ms_swift {
extern const Kind kKind;
}
namespace nemo {
extern const Kind kKind;
}
namespace olmo {
extern const Kind kKind;
}
namespace openrlhf {
extern const Kind kKind;
}
namespace oumi {
extern const Kind kKind;
}
namespace nemo_rl {
extern const Kind kKind;
}
namespace slime {
extern const Kind kKind;
}
namespace verl {
extern const Kind kKind;
}
namespace peft_adapter {
extern const Kind kKind;
}
namespace torchtitan {
extern const Kind kKind;
}
namespace torchtune {
extern const Kind kKind;
}
namespace training_arguments {
extern const Kind kKind;
}

namespace {

constexpr std::array kKinds{
    &launcher::kKind,   &hostfile::kKind,     &peft_adapter::kKind, &accelerate::kKind,
    &oumi::kKind,       &olmo::kKind,         &llm_foundry::kKind,  &openrlhf::kKind,
    &slime::kKind,      &verl::kKind,         &nemo_rl::kKind,      &ds_config::kKind,
    &torchtitan::kKind, &torchtune::kKind,    &nemo::kKind,         &axolotl::kKind,
    &ms_swift::kKind,   &llamafactory::kKind, &megatron::kKind,     &training_arguments::kKind,
    &hf_config::kKind};

}  // namespace

std::span<const Kind* const> kinds() {
  return kKinds;
}

const Kind* kind_named(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Kind* kind) { return kind->name == name; });
  return found == kKinds.end() ? nullptr : *found;
}

const Kind* kind_of(const Document& document) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Kind* kind) { return kind->recognise(document); });
  return found == kKinds.end() ? nullptr : *found;
}

bool has_any(const Document& document, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return value_below(document.value, key) != nullptr;
  });
}

bool has_all(const Document& document, std::initializer_list<std::string_view> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return value_below(document.value, key) != nullptr;
  });
}

}  // namespace shardplan::importing
