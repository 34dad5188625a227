// What a job leaves open: batch, lengths, tokens of a generation.
#include <fmt/format.h>

#include <algorithm>

#include "load/images.h"
#include "load/job_loader.h"
#include "load/positions.h"
#include "load/workload.h"

namespace shardplan {

void JobLoader::assume_micro_batch() {
  plan().workload.micro_batch = 1;
  job_.assumed.push_back("micro-batch: 1");
}

void JobLoader::assume_generation() {
  Workload& w = plan().workload;
  const auto assume = [&](std::int64_t& value, std::int64_t fallback, std::string_view what) {
    if (value > 0) return;
    value = fallback;
    job_.assumed.push_back(fmt::format("{}: {}", what, fallback));
  };
  if (!w.generation.engine) assume(w.micro_batch, 1, "batch");
  assume(w.generation.new_tokens, 256, "new tokens");
  const std::int64_t room = job_.model.facts.max_positions - w.generation.new_tokens;
  assume(w.sequence_length, room > 0 ? std::min<std::int64_t>(2048, room) : 2048, "prompt length");
}

/// The sequence length of a job with lengths is what samples are cut to; of its plan that of the
/// longest batch.
void JobLoader::take_lengths() {
  Workload& w = plan().workload;
  if (!w.lengths || (w.packing && w.sequence_length == 0)) return;
  if (w.sequence_length > 0) w.lengths = cut_lengths(*std::move(w.lengths), w.sequence_length);
  if (!w.packing) w.sequence_length = w.lengths->longest;
}

void JobLoader::fill_defaults() {
  Workload& w = plan().workload;
  const ModelFacts& facts = job_.model.facts;
  if (is_inference()) assume_generation();
  if (w.micro_batch == 0 && !w.generation.engine) assume_micro_batch();
  if (w.gradient_accumulation == 0) w.gradient_accumulation = 1;
  take_lengths();
  if (w.sequence_length == 0) {
    const std::int64_t usual = facts.usual_length > 0 ? facts.usual_length : 2048;
    w.sequence_length = facts.max_positions > 0 ? std::min(usual, facts.max_positions) : usual;
    w.sequence_length = length_with_images(job_.model, plan(), w.sequence_length);
    job_.assumed.push_back(fmt::format("sequence length: {}", w.sequence_length));
  }
  check_image_tokens(reader_, job_.model, plan());
  if (facts.aligns_labels && w.target_length == 0)
    job_.assumed.push_back(
        fmt::format("target length: {} labels, as many as there are positions", w.sequence_length));
  if ((facts.encoder_decoder || facts.aligns_labels) && w.target_length == 0)
    w.target_length = w.sequence_length;
  if (auto problem = longer_than_positions(facts, plan(), reader_.file()))
    job_.diagnostics.push_back(*std::move(problem));
  if (!facts.supports_sdpa && plan().attention == AttentionKind::sdpa) {
    warn("attention", fmt::format("{} has no fused attention in transformers: eager is assumed",
                                  facts.model_type));
    plan().attention = AttentionKind::eager;
  }
}

}  // namespace shardplan
