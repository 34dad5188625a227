// Whether degrees of parallelism suit the model and the machine.
#include <fmt/format.h>

#include <algorithm>

#include "lint/rules/families.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

/// Shares of a step that a rule speaks up at.
constexpr double kBubble = 1.0 / 3, kImbalance = 0.05;

constexpr const char* kTensorSize = "tensor_parallel.autotp_size";
constexpr const char* kSequenceSize = "sequence_parallel_size";
constexpr const char* kExpertSize = "expert_parallel.autoep_size";
constexpr const char* kAccumulation = "gradient_accumulation_steps";
constexpr const char* kStages = "pipeline.stages";

constexpr std::string_view kTensor = "deepspeed/module_inject/tp_shard.py get_shard_size";
constexpr std::string_view kPipeline = "deepspeed/runtime/pipe/module.py PipelineModule";
constexpr std::string_view kUlysses =
    "deepspeed/runtime/sequence_parallel/ulysses_sp.py UlyssesSPAttentionHF.__init__";
constexpr std::string_view kExperts =
    "deepspeed/module_inject/auto_ep_config.py validate_autoep_post_detection";

constexpr Rule kRules[] = {
    {"parallel.tensor-ranks"_rule, Severity::error, "autotp_size does not divide the ranks",
     "Tensor-parallel groups have the same size, and every rank is in one.",
     "deepspeed/utils/groups.py _init_tp_groups_with_new_group", "Choose a divisor of the ranks."},
    {"parallel.tensor-heads"_rule, Severity::error, "More tensor-parallel ranks than heads",
     "AutoTP shares out whole heads of keys and values; the ranks that are left over get "
     "projections without rows, and attention cannot shape their output.",
     kTensor, "Use a degree of at most the key-value heads."},
    {"parallel.tensor-uneven"_rule, Severity::warning,
     "Heads that tensor parallelism splits unevenly",
     "Some ranks get a head more than others: all wait for them in every layer, and they hold "
     "more.",
     kTensor, "Choose a divisor of the key-value heads."},
    {"parallel.tensor-across-nodes"_rule, Severity::warning, "Tensor parallelism across nodes",
     "Every layer waits for an all-reduce in both passes, which nothing hides; between nodes it "
     "runs "
     "at a fraction of NVLink's rate.",
     "Narayanan et al. 2021, section 3.2, takeaway 1 (arxiv.org/abs/2104.04473)",
     "Keep the degree within a node, and use ZeRO or a pipeline between nodes."},
    {"parallel.pipeline-ranks"_rule, Severity::error, "Stages do not divide the ranks",
     "Every stage has as many ranks; PipelineModule raises an error otherwise.", kPipeline,
     "Choose a divisor of the ranks."},
    {"parallel.pipeline-empty"_rule, Severity::error, "More stages than layers",
     "Layers are not split: stages are left that only pass on what they receive.", kPipeline,
     "Use fewer stages."},
    {"parallel.pipeline-uneven"_rule, Severity::warning, "Stages of unequal length",
     "A pipeline runs at the pace of its longest stage.", kPipeline,
     "Choose a number of stages that divides the layers."},
    {"parallel.pipeline-bubble"_rule, Severity::warning, "Too few micro-batches for the pipeline",
     "A schedule of M micro-batches on S stages stands still for (S - 1) / (M + S - 1) of its time "
     "while it fills and drains.",
     "deepspeed/runtime/pipe/schedule.py TrainSchedule; Narayanan et al. 2021, section 2.2",
     "Raise gradient_accumulation_steps to at least four times the stages."},
    {"parallel.sequence-heads"_rule, Severity::error,
     "sequence_parallel_size does not suit the heads",
     "Ulysses trades the sequence for heads: each rank attends with a share of them. Attention "
     "heads must divide evenly; heads of keys and values too, or be copied to as many ranks each.",
     kUlysses, "Choose a degree that divides the attention heads."},
    {"parallel.expert-count"_rule, Severity::error, "autoep_size does not divide the experts",
     "Every rank owns as many experts of a layer, and at least one.", kExperts,
     "Choose a divisor of the experts."},
    {"parallel.expert-dense"_rule, Severity::warning,
     "Expert parallelism of a model without experts",
     "AutoEP looks for layers with a router and experts, finds none and changes nothing.",
     "deepspeed/module_inject/auto_ep.py", "Remove the expert_parallel block."},
};

/// "1, 2, 4 or 8"
Said divisors(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  if (all.size() == 1) return "1";
  const std::int64_t last = all.back();
  all.pop_back();
  return say("{} or {}", fmt::join(all, ", "), last);
}

class DegreeChecks {
 public:
  DegreeChecks(const LintSubject& subject, LintFindings& findings)
      : s_(subject),
        facts_(subject.model == nullptr ? ModelFacts{} : subject.model->facts),
        found_(findings.config) {}

  void run() {
    tensor(s_.values.integer(kTensorSize));
    pipeline(s_.context.pipeline_parallel);
    sequence(s_.values.maybe_integer(kSequenceSize).value_or(1));
    if (s_.values.flag("expert_parallel.enabled")) experts(s_.values.integer(kExpertSize));
  }

 private:
  /// Of all stages; 0: not known.
  std::int64_t ranks() const {
    if (s_.cluster != nullptr) return s_.cluster->world();
    return s_.accelerate != nullptr ? s_.accelerate->processes.value_or(0) : 0;
  }

  void tensor(std::int64_t degree) {
    if (degree <= 1) return;
    if (ranks() > 0 && ranks() % degree != 0)
      found_.error("parallel.tensor-ranks"_rule, kTensorSize,
                   say("{} does not divide the {} ranks", degree, ranks()), divisors(ranks()));
    const std::int64_t heads =
        facts_.key_value_heads > 0 ? facts_.key_value_heads : facts_.attention_heads;
    if (heads > 0 && degree > heads) {
      found_.error(
          "parallel.tensor-heads"_rule, kTensorSize,
          say("{} ranks share {} key-value heads, and {} get none", degree, heads, degree - heads),
          say("at most {}", heads));
    } else if (heads > 0 && heads % degree != 0) {
      found_.warning("parallel.tensor-uneven"_rule, kTensorSize,
                     say("{} does not divide the {} key-value heads: some ranks have {}, "
                         "others {}",
                         degree, heads, heads / degree + 1, heads / degree),
                     divisors(heads));
    }
    if (s_.cluster == nullptr || s_.cluster->nodes < 2) return;
    const std::int64_t node = s_.cluster->gpus_per_node;
    if (node % degree != 0)
      found_.warning("parallel.tensor-across-nodes"_rule, kTensorSize,
                     say("groups of {} ranks span nodes of {} GPUs", degree, node), divisors(node));
  }

  void pipeline(std::int64_t stages) {
    if (stages <= 1) return;
    if (ranks() > 0 && ranks() % stages != 0)
      found_.error("parallel.pipeline-ranks"_rule, kStages,
                   say("{} stages do not divide the {} ranks", stages, ranks()), divisors(ranks()));
    if (facts_.layers > 0) layers(stages);
    const std::optional<std::int64_t> batches = s_.config.options.gradient_accumulation;
    if (!batches) return;
    const double bubble =
        static_cast<double>(stages - 1) / static_cast<double>(*batches + stages - 1);
    if (bubble > kBubble)
      found_.warning("parallel.pipeline-bubble"_rule, kAccumulation,
                     say("{} micro-batches on {} stages: the pipeline stands still for "
                         "{:.0f} % of its time",
                         *batches, stages, 100 * bubble),
                     say("{} or more", 4 * stages));
  }

  void layers(std::int64_t stages) {
    if (stages > facts_.layers) {
      found_.error("parallel.pipeline-empty"_rule, kStages,
                   say("{} stages for {} layers", stages, facts_.layers),
                   say("at most {}", facts_.layers));
      return;
    }
    const std::int64_t longest = (facts_.layers + stages - 1) / stages;
    const double over =
        static_cast<double>(longest * stages) / static_cast<double>(facts_.layers) - 1;
    if (over > kImbalance)
      found_.warning("parallel.pipeline-uneven"_rule, kStages,
                     say("{} layers on {} stages: the longest has {}, and all wait for it, "
                         "{:.0f} % of the time",
                         facts_.layers, stages, longest, 100 * over / (1 + over)),
                     divisors(facts_.layers));
  }

  void sequence(std::int64_t degree) {
    const std::int64_t heads = facts_.attention_heads, shared = facts_.key_value_heads;
    if (degree <= 1 || heads == 0) return;
    const bool shares = shared == 0 || shared % degree == 0 || degree % shared == 0;
    if (heads % degree != 0 || !shares)
      found_.error("parallel.sequence-heads"_rule, kSequenceSize,
                   heads % degree != 0
                       ? say("{} does not divide the {} attention heads", degree, heads)
                       : say("{} neither divides the {} key-value heads nor is a multiple "
                             "of them",
                             degree, shared),
                   divisors(shared == 0 ? heads : std::min(heads, shared)));
  }

  void experts(std::int64_t degree) {
    if (s_.model == nullptr) return;
    const std::int64_t count = expert_count(*s_.model);
    if (count == 0) {
      found_.warning("parallel.expert-dense"_rule, "expert_parallel",
                     say("{} has no experts", facts_.name), "no such block");
    } else if (degree > 0 && count % degree != 0) {
      found_.error("parallel.expert-count"_rule, kExpertSize,
                   say("{} does not divide the {} experts", degree, count), divisors(count));
    }
  }

  const LintSubject& s_;
  const ModelFacts facts_;
  DsFindings& found_;
};

}  // namespace

std::span<const Rule> degree_rules() {
  return kRules;
}

void check_degrees(const LintSubject& subject, LintFindings& findings) {
  DegreeChecks(subject, findings).run();
}

}  // namespace shardplan
