// One case of tests/golden/saved_tensors*.json: a network, its batch, and what autograd kept of it.
#pragma once

#include <ostream>
#include <string>

#include "json/document.h"
#include "json/reader.h"
#include "kernels/registry.h"
#include "load/model_config.h"
#include "load/options.h"
#include "model/architectures/registry.h"
#include "options/tables.h"
#include "program/tape.h"

#include <nlohmann/json.hpp>

namespace shardplan::saved_tensors_test {

struct Case {
  std::string name;
  const Json* json = nullptr;
  DType dtype = DType::f32;
  AttentionKind attention = AttentionKind::sdpa;
  Sizes sizes;

  explicit Case(const Json& j) : json(&j) {
    dtype = j.at("dtype") == "float32" ? DType::f32 : DType::bf16;
    attention = j.at("attention") == "sdpa" ? AttentionKind::sdpa : AttentionKind::eager;
    sizes = {.batch = j.at("batch").get<std::int64_t>(),
             .sequence = j.at("sequence").get<std::int64_t>(),
             .target = j.value("target", std::int64_t{1})};
    name = j.at("case").get<std::string>() + "_" + j.at("attention").get<std::string>() + "_" +
           j.at("dtype").get<std::string>() + "_batch" + std::to_string(sizes.batch) +
           kernels_in_name();
    if (j.contains("frozen")) name += "_frozen_" + j.at("frozen").get<std::string>();
  }
  /// One image a sample, for networks that read images; what is frozen, for all.
  ImageWork images() const {
    if (!json->contains("frozen")) return {};
    const std::string frozen = json->at("frozen");
    return {.per_sample = 1,
            .tokens = json->value("image_tokens", std::int64_t{0}),
            .frozen = frozen == "nothing" ? FrozenParts::nothing
                      : frozen == "tower" ? FrozenParts::tower
                                          : FrozenParts::tower_and_projector};
  }
  /// The sizes of the batch, with its images.
  Sizes sizes_for(const Model& model) const {
    Sizes all = sizes;
    all.images = model.facts.image.patches > 0 ? sizes.batch * model.facts.image.pieces : 0;
    all.patches = model.facts.image.patches;
    return all;
  }
  /// Of a run with Liger's kernels: what its type is patched with, or a list.
  KernelRequest kernels() const {
    KernelRequest request;
    if (!json->contains("kernels")) return request;
    request.patches = json->at("kernels").is_string();
    for (std::size_t i = 0; i < kKernelNames && !request.patches; ++i)
      for (const Json& kernel : json->at("kernels"))
        if (kernel == fused_kernels()[i]->name) request.names |= 1U << i;
    return request;
  }
  std::string kernels_in_name() const {
    return json->contains("kernels") ? json->at("kernels").dump() : std::string();
  }
  /// peft's adapters, in the words of a job; they are fp32, and so is what they drop.
  std::optional<Lora> lora() const {
    if (!json->contains("lora")) return std::nullopt;
    Workload workload;
    workload.lora.emplace();
    ObjectReader reader(json->at("lora"), name, "lora");
    read_options(reader, lora_table(), workload);
    return workload.lora;
  }
  DType dropped_type() const { return json->contains("lora") ? DType::f32 : dtype; }
  Model model() const {
    BuildOptions options;
    options.lora = lora();
    options.attention = attention;
    options.requested = kernels();
    options.images = images();
    options.all_f32 = dtype == DType::f32;
    return build_model(load_model_config(json->at("config"), name), options);
  }
  std::int64_t config(const char* key, std::int64_t fallback) const {
    const Json& whole = json->at("config");
    return (whole.contains("text_config") ? whole.at("text_config") : whole).value(key, fallback);
  }
  std::int64_t block(std::int64_t bytes) const { return round_up(bytes, kAllocationUnit); }
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

}  // namespace shardplan::saved_tensors_test
