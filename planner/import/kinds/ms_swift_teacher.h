// ms-swift's keys about a teacher, for distillation and for GRPO.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::ms_swift {

/// Whether all parameters train.
bool is_full(const Key& key);

void read_teacher(Key& key);            ///< teacher_model
void refuse_teacher_server(Key& key);   ///< teacher_model_server
void read_teacher_deepspeed(Key& key);  ///< teacher_deepspeed
void read_teacher_offload(Key& key);    ///< offload_teacher_model
void read_top_logits(Key& key);         ///< gkd_logits_topk

}  // namespace shardplan::importing::ms_swift
