#include "parallel/degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "frameworks/registry.h"
#include "model/layers/convolution.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What is wrong with a degree; empty when nothing is.
using Complaint = Said;

Complaint not_divided(std::int64_t whole, std::string_view of, std::int64_t degree) {
  if (whole <= 0 || whole % degree == 0) return {};
  return say("{} does not divide the {} {}", degree, whole, of);
}

/// Heads of keys and values are divided, or each is on as many ranks as share it.
Complaint check_key_value_heads(std::int64_t heads, std::int64_t degree) {
  if (heads <= 0 || heads % degree == 0 || degree % heads == 0) return {};
  return fmt::format("{} neither divides the {} key-value heads nor is a multiple of them", degree,
                     heads);
}

std::string key_of(Degree degree) {
  return fmt::format("parallel.{}", name_of(degree));
}

class Checker {
 public:
  Checker(const Model& model, const Plan& plan) : model_(model), facts_(model.facts), plan_(plan) {}

  std::optional<DivisionProblem> run() {
    for (std::size_t i = 0; i < kDegreeNames.size(); ++i)
      if (auto problem = check(static_cast<Degree>(i))) return problem;
    if (auto problem = check_flags()) return problem;
    if (auto problem = check_schedule()) return problem;
    return check_expert_tensor();
  }

 private:
  std::optional<DivisionProblem> check(Degree degree) const {
    const std::int64_t asked = plan_.parallel.*member_of(degree);
    if (asked == 1) return std::nullopt;
    const bool trainers_own = degree == Degree::sequence && plan_.trainer->divides_sequences;
    const Support support = trainers_own ? Support::yes : support_of(plan_.framework.kind, degree);
    if (support == Support::never) {
      return DivisionProblem{
          key_of(degree),
          fmt::format("{} has no degree of this kind, found {}", framework(), asked),
          "1" + others_with(degree)};
    }
    if (support == Support::not_yet)
      return DivisionProblem{
          key_of(degree),
          fmt::format("degree {} with {} cannot be estimated yet", asked, framework()), "1"};
    const Complaint complaint = complaint_of(degree, asked);
    if (complaint.empty()) return std::nullopt;
    return DivisionProblem{key_of(degree), complaint, fmt::format("{}", nearest(degree, asked))};
  }

  std::string_view framework() const { return name_of(plan_.framework.kind); }

  /// ", or framework deepspeed or megatron": who has what this one has not.
  static std::string others_with(Degree degree) {
    std::string names;
    for (const FrameworkTraits* other : all_frameworks())
      if (other->degrees.of(degree) == Support::yes)
        names += (names.empty() ? ", or framework " : " or ") + std::string(other->name.get());
    return names;
  }

  std::int64_t nearest(Degree degree, std::int64_t asked) const {
    for (std::int64_t distance = 1; distance < asked; ++distance) {
      if (complaint_of(degree, asked - distance).empty()) return asked - distance;
      if (asked + distance <= plan_.cluster.world() &&
          complaint_of(degree, asked + distance).empty())
        return asked + distance;
    }
    return 1;
  }

  Complaint complaint_of(Degree degree, std::int64_t value) const {
    const Workload& w = plan_.workload;
    if (value > 1 && facts_.image.has_tower && !divides_with_tower(degree))
      return "a network that reads images cannot be estimated divided";
    // Experts are whole where they are; the frameworks say whose they can send rows to.
    if (value > 1 && facts_.undivided && degree != Degree::expert && !is_cut_by_name(degree))
      return fmt::format("a network of type '{}' cannot be estimated divided", facts_.model_type);
    const bool along = degree == Degree::sequence || degree == Degree::context;
    const bool hands_on = degree == Degree::context && facts_.own_ring &&
                          traits_of(plan_).split == SplitStyle::transformers;
    if (value > 1 && along && convolves_tokens(model_) && !hands_on)
      return "layers that convolve tokens or have a state need the whole sequence";
    Parallel changed = plan_.parallel;
    changed.*member_of(degree) = value;
    const std::int64_t world = plan_.cluster.world();
    if (world % changed.model_ranks() != 0) {
      if (changed.model_ranks() == value) return not_divided(world, "GPUs", value);
      return fmt::format("the degrees multiply to {}, which does not divide the {} GPUs",
                         changed.model_ranks(), world);
    }
    switch (degree) {
      case Degree::tensor:
        return first_of({not_divided(facts_.attention_heads, "attention heads", value),
                         check_key_value_heads(facts_.key_value_heads, value),
                         not_divided(facts_.hidden, "hidden dimensions", value),
                         changed.sequence_parallel
                             ? not_divided(w.sequence_length, "tokens of a sequence", value)
                             : ""});
      case Degree::pipeline:
        changed.virtual_pipeline = 1;  // which has a complaint of its own
        return check_stages(changed);
      case Degree::virtual_pipeline:
        if (changed.pipeline == 1) return "chunks of stages need a pipeline of several stages";
        return check_stages(changed);
      case Degree::sequence:
        return first_of({not_divided(facts_.attention_heads, "attention heads", value),
                         check_key_value_heads(facts_.key_value_heads, value),
                         not_divided(w.sequence_length, "tokens of a sequence", value)});
      case Degree::context:  // each rank has a piece from the front and one from the back
        return not_divided(w.sequence_length, "tokens of a sequence (twice the degree must)",
                           2 * value);
      case Degree::expert:
        return check_experts(changed);
    }
    return {};
  }

  bool divides_with_tower(Degree degree) const {
    if (degree == Degree::expert) return true;
    const FrameworkTraits& traits = traits_of(plan_);
    const bool tokens = degree == Degree::sequence || degree == Degree::context;
    return (degree != Degree::sequence && traits.divides_behind_towers) ||
           (!tokens && traits.runs_towers_whole);
  }

  bool is_cut_by_name(Degree degree) const {
    if (traits_of(plan_).split != SplitStyle::transformers) return false;
    if (degree == Degree::context) return facts_.own_ring;
    return facts_.cut_by_name && degree != Degree::sequence;
  }

  static Complaint first_of(std::initializer_list<Complaint> complaints) {
    for (const Complaint& c : complaints)
      if (!c.empty()) return c;
    return {};
  }

  Complaint check_stages(const Parallel& p) const {
    if (facts_.encoder_decoder) return "an encoder and a decoder have no stages of one kind";
    if (facts_.lends) return "layers read what layers of other stages have made";
    const std::int64_t blocks = block_count(model_);
    const std::int64_t chunks = p.pipeline * p.virtual_pipeline;
    const std::int64_t ends = p.balance == StageBalance::blocks_and_ends ? 2 : 0;
    const std::int64_t first =
        p.stage_layers.empty() ? (blocks + ends) / chunks - ends / 2 : p.stage_layers.front();
    if (first < added_rows())
      return fmt::format("a first stage of {} blocks, and rows of the tower are added behind {}",
                         first, added_rows());
    if (!p.stage_layers.empty()) return {};
    if (blocks + ends < chunks)
      return fmt::format("{} blocks are fewer than {} stages", blocks, chunks);
    if (p.balance == StageBalance::parameters || (blocks + ends) % chunks == 0 ||
        traits_of(plan_).torch_pipelining)
      return {};
    if (ends > 0)
      return say(
          "{} stages do not divide the {} blocks with the embedding and the head as one each",
          chunks, blocks);
    if ((blocks + 2) % chunks == 0)
      return say(
          "{} stages do not divide the {} blocks; with the embedding and the head as one each "
          "(balance blocks_and_ends) they do",
          chunks, blocks);
    return say("{} stages do not divide the {} blocks", chunks, blocks);
  }

  /// The first blocks behind which something is added that the first stage has made (qwen3_vl.py of
  /// mcore-bridge, Qwen3VLTransformerBlock).
  std::int64_t added_rows() const {
    std::int64_t blocks = 0, behind = 0;
    for (const Segment& segment : model_.segments) {
      if (segment.is_block())
        blocks += segment.repeat;
      else if (blocks > 0 && blocks < block_count(model_))
        behind = blocks;
    }
    return behind;
  }

  Complaint check_experts(const Parallel& p) const {
    const std::int64_t experts = expert_count(model_);
    if (experts == 0) return "a dense model has no experts";
    const std::int64_t shared = plan_.cluster.world() / p.pipeline;
    if (shared % (p.expert * p.expert_tensor) != 0)
      return fmt::format("{} does not divide the {} GPUs of a stage", p.expert * p.expert_tensor,
                         shared);
    return not_divided(experts, "experts", p.expert);
  }

  std::optional<DivisionProblem> check_flags() const {
    const Parallel& p = plan_.parallel;
    if (p.sequence_parallel && p.tensor == 1)
      return DivisionProblem{"parallel.sequence_parallel",
                             "divides along tokens what tensor-parallel ranks would each keep, and "
                             "the tensor degree is 1",
                             "false, or a tensor degree"};
    if (p.sequence_parallel && facts_.image.tokens > 0 && !traits_of(plan_).runs_towers_whole)
      return DivisionProblem{"parallel.sequence_parallel",
                             "tokens that images are placed among cannot be estimated divided",
                             "false, or workload.images 0"};
    return std::nullopt;
  }

  std::optional<DivisionProblem> check_schedule() const {
    const Parallel& p = plan_.parallel;
    if (p.pipeline == 1) return std::nullopt;
    if (auto problem = traits_of(plan_).pipeline_problem(plan_)) return problem;
    const bool interleaved = p.schedule == PipelineSchedule::interleaved;
    const bool v = p.schedule == PipelineSchedule::zbv;
    if (v && !traits_of(plan_).torch_pipelining)
      return DivisionProblem{"parallel.schedule",
                             fmt::format("{} has no schedule zbv", framework()),
                             "interleaved, or framework fsdp2"};
    if (p.has_chunks() != (p.virtual_pipeline > 1) || (v && p.virtual_pipeline != 2))
      return DivisionProblem{
          "parallel.schedule",
          fmt::format("{} with {} chunk(s) on each stage", name_of(p.schedule), p.virtual_pipeline),
          v             ? "a virtual_pipeline of 2, or 1f1b"
          : interleaved ? "a virtual_pipeline above 1, or 1f1b"
                        : "interleaved"};
    if (interleaved && plan_.workload.gradient_accumulation % interleaved_group(plan_) != 0)
      return DivisionProblem{
          "parallel.virtual_pipeline",
          fmt::format("the interleaved schedule takes micro-batches {} at a time, one for each "
                      "stage, and workload.gradient_accumulation gives {}",
                      p.pipeline, plan_.workload.gradient_accumulation),
          fmt::format("gradient_accumulation {}", next_multiple(p.pipeline))};
    return check_stage_layers();
  }

  std::int64_t next_multiple(std::int64_t of) const {
    return std::max<std::int64_t>(1, (plan_.workload.gradient_accumulation + of - 1) / of) * of;
  }

  std::optional<DivisionProblem> check_stage_layers() const {
    const Parallel& p = plan_.parallel;
    if (p.stage_layers.empty()) return std::nullopt;
    const std::int64_t chunks = p.pipeline * p.virtual_pipeline;
    std::int64_t sum = 0;
    for (const std::int64_t blocks : p.stage_layers) sum += blocks;
    if (static_cast<std::int64_t>(p.stage_layers.size()) == chunks && sum == block_count(model_))
      return std::nullopt;
    return DivisionProblem{
        "parallel.stage_layers",
        fmt::format("{} stages with {} blocks in all", p.stage_layers.size(), sum),
        fmt::format("{} stages with {} blocks in all", chunks, block_count(model_))};
  }

  std::optional<DivisionProblem> check_expert_tensor() const {
    const Parallel& p = plan_.parallel;
    if (p.expert_tensor == 1 || p.expert_tensor == p.tensor) return std::nullopt;
    // Other groups than the tensor-parallel ones are Megatron-LM's alone.
    if (p.tensor == 1 || !traits_of(plan_).divides_experts)
      return DivisionProblem{
          "parallel.expert_tensor",
          fmt::format("an expert is on one rank or on all {} tensor-parallel ones, found {}",
                      p.tensor, p.expert_tensor),
          p.tensor == 1 ? "1" : fmt::format("1 or {}", p.tensor)};
    const std::int64_t stage = plan_.cluster.world() / p.pipeline;
    if (stage % (p.expert * p.expert_tensor) == 0) return std::nullopt;
    return DivisionProblem{"parallel.expert_tensor",
                           not_divided(stage, "GPUs of a stage", p.expert * p.expert_tensor),
                           fmt::format("1 or {}", p.tensor)};
  }

  const Model& model_;
  const ModelFacts& facts_;
  const Plan& plan_;
};

}  // namespace

std::optional<DivisionProblem> degree_problem(const Model& model, const Plan& plan) {
  return Checker(model, plan).run();
}

std::int64_t interleaved_group(const Plan& plan) {
  const std::int64_t stages = plan.parallel.pipeline;
  const std::int64_t count = plan.workload.gradient_accumulation;
  if (!traits_of(plan).torch_pipelining) return stages;
  return count / std::max<std::int64_t>(1, count / stages);
}

std::int64_t block_count(const Model& model) {
  std::int64_t blocks = 0;
  for (const Segment& segment : model.segments)
    if (segment.is_block()) blocks += segment.repeat;
  return blocks;
}

std::int64_t expert_count(const Model& model) {
  for (const Parameter& p : model.parameters)
    if (p.kind == ParameterKind::expert) return p.shape.front();
  return 0;
}

}  // namespace shardplan
