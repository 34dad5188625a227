// Distillation (3602360a5, rlhf_trainers/gkd_trainer.py), and GRPO with a teacher's scores.
#include "import/kinds/ms_swift_teacher.h"

#include <fmt/format.h>

#include "import/vocabulary.h"

namespace shardplan::importing::ms_swift {
namespace {

Json& teacher_of(Key& key) {
  return key.recipe().rlhf["models"]["reference"];
}

}  // namespace

bool is_full(const Key& key) {
  for (const char* name : {"tuner_type", "train_type"})
    if (const Json* type = key.other(name);
        type != nullptr && (*type == "full" || *type == "llamapro"))
      return true;
  return false;
}

/// With LoRA and the student's own name the teacher is the student without its adapters.
void read_teacher(Key& key) {
  const Json* type = key.other("rlhf_type");
  const Json* student = key.other("model");
  const bool own = student != nullptr && *student == key.value();
  if (type != nullptr && *type == "gkd") {
    if (own && !is_full(key)) return key.took("workload.reference: base");
    teacher_of(key)["model"] = key.text();
    return key.took("workload.models.reference.model");
  }
  if (type == nullptr || *type != "grpo") return key.ignore("only gkd and grpo have a teacher");
  // OPD-RL: it scores the answers, as a reference does.
  const Json* beta = key.other("beta");
  const bool asks_reference = beta == nullptr || *beta != 0;
  if (asks_reference && is_full(key))
    key.refuse("a teacher beside GRPO's reference is not estimated", "beta 0, or rlhf_type gkd");
  if (own && !is_full(key)) return key.took("workload.reference: base");
  teacher_of(key)["model"] = key.text();
  if (asks_reference)
    key.warn("the teacher's scores are estimated, and not the time of those of the base beside it");
  else
    key.took("workload.models.reference.model");
}

void refuse_teacher_server(Key& key) {
  key.refuse("a teacher on a server, of which the largest logits come, is not estimated",
             "teacher_model");
}

void read_teacher_deepspeed(Key& key) {
  const Json* stage = key.other("deepspeed");
  const std::string name = key.text();
  if (stage == nullptr) return key.ignore("the student runs without DeepSpeed");
  if (name == "zero3_offload")
    teacher_of(key)["framework"]["ds_config"]["zero_optimization"]["offload_param"] =
        Json{{"device", "cpu"}, {"pin_memory", true}};
  else if (!stage->is_string() || *stage != name)
    key.refuse(fmt::format("'{}' beside '{}' is not estimated", name, stage->dump()),
               "the student's own, or zero3_offload beside zero3");
  key.took("workload.models.reference.framework");
}

void read_teacher_offload(Key& key) {
  if (!key.flag()) return key.ignore("it stays on the GPU");
  teacher_of(key)["idle"] = "host";
  key.took("workload.models.reference.idle: host");
}

void read_top_logits(Key& key) {
  key.warn(
      "a loss over a few logits of each token keeps less than one over all, which is estimated");
}

}  // namespace shardplan::importing::ms_swift
