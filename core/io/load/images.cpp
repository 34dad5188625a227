#include "load/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

bool says(ObjectReader& job, std::string_view key) {
  const Json* workload = job.find("workload");
  return workload != nullptr && workload->is_object() && workload->contains(key);
}

std::int64_t tokens_of(const Model& model, const Plan& plan) {
  return checked_mul(plan.workload.images.per_sample, model.facts.image.tokens);
}

}  // namespace

void check_images(ObjectReader& job, const Model& model, ImageWork& work) {
  if (model.facts.image.text_alone) {
    for (const char* key : {"images", "image_tokens"})
      if (says(job, key) && work.per_sample > 0)
        job.fail(fmt::format("workload.{}", key),
                 fmt::format("what the tower of a network of type '{}' keeps of images is not "
                             "described",
                             model.facts.model_type),
                 "workload.images 0 (--images 0), which trains the text");
    work.per_sample = 0;
  }
  if (model.facts.image.has_tower) return;
  for (const std::string_view key : {"images", "image_tokens", "frozen"})
    if (says(job, key) && !(key == "frozen" && !model.facts.tower.empty()))
      job.fail(
          fmt::format("workload.{}", key),
          fmt::format("given, but a network of type '{}' reads no images", model.facts.model_type),
          "a network that does, such as qwen2_5_vl, or no such field");
}

std::vector<std::string> assumed_images(ObjectReader& job, const Model& model, const Plan& plan) {
  std::vector<std::string> assumed;
  if (!model.facts.tower.empty() && !says(job, "frozen"))
    assumed.push_back(fmt::format("frozen: nothing, the {} trains", model.facts.tower));
  if (!model.facts.image.has_tower) return assumed;
  const bool alone = model.facts.image.text_alone;
  if (!says(job, "images"))
    assumed.push_back(fmt::format("images per sample: {}{}", plan.workload.images.per_sample,
                                  alone ? ", the text alone: what the network's towers keep is not "
                                          "described"
                                        : ""));
  if (!says(job, "frozen") && !plan.workload.lora && !alone)
    assumed.push_back("frozen: nothing, the tower and its projector train");
  return assumed;
}

std::int64_t length_with_images(const Model& model, const Plan& plan, std::int64_t usual) {
  constexpr std::int64_t kText = 1024;  // room for the text beside them
  const std::int64_t images = tokens_of(model, plan);
  if (images == 0 || images + kText <= usual) return usual;
  return (images / kText + 2) * kText;
}

void check_image_tokens(ObjectReader& job, const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  const std::int64_t images = tokens_of(model, plan);
  if (images < w.sequence_length || images == 0) return;
  job.fail("workload.sequence_length",
           fmt::format("{} tokens have no room for {} image{} of {} tokens each", w.sequence_length,
                       w.images.per_sample, w.images.per_sample == 1 ? "" : "s",
                       model.facts.image.tokens),
           fmt::format("more than {}, fewer images or a smaller image_tokens", images));
}

}  // namespace shardplan
