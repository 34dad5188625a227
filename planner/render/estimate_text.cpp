#include "render/estimate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "optimizers/description.h"
#include "render/cost_text.h"
#include "render/describe.h"
#include "render/foundation.h"
#include "render/table.h"
#include "render/text_width.h"
#include "render/tight_text.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

constexpr std::array kStates{Category::parameters, Category::gradients, Category::master_parameters,
                             Category::optimizer_states};

bool is_state(Category c) {
  return std::find(kStates.begin(), kStates.end(), c) != kStates.end();
}

void add_resource(TextTable& table, const char* name, const ResourceVerdict& r, const char* key) {
  if (r.needed == 0) {
    table.add({name, "not used", "", ""});
  } else if (!r.available) {
    table.add({name, verdict_word(r.fit), format_bytes(r.needed) + " per node",
               fmt::format("what a node has is not known; --{} says it", key)});
  } else {
    table.add({name, verdict_word(r.fit),
               fmt::format("{} of {}", format_bytes(r.needed), format_bytes(*r.available)),
               "on each node"});
  }
}

}  // namespace

namespace {

/// Models on GPUs of their own, what they need there and what they do meanwhile.
std::string groups_apart(const Estimate& e) {
  std::string text;
  for (const ModelsApart& g : e.apart) {
    std::string line = fmt::format("{} on {} GPU{} of their own: {}, {} of {} each; upper bound {}",
                                   g.names, g.gpus, g.gpus == 1 ? "" : "s",
                                   verdict_word(g.verdict.gpu.fit), format_bytes(g.device.point),
                                   format_bytes(g.usable_bytes), format_bytes(g.device.upper));
    if (g.scores_seconds > 0)
      line += fmt::format("; scores take {}", format_seconds(g.scores_seconds));
    if (g.trains_seconds > 0)
      line += fmt::format(", training {}", format_seconds(g.trains_seconds));
    text += wrapped(line, "  ", "    ");
  }
  return text;
}

/// What many iterations of other lengths make the allocator hold.
std::string iteration_lines(const Estimate& e) {
  if (!e.iterations) return "";
  const ManyIterations& many = *e.iterations;
  return wrapped(fmt::format("over {} iterations, whose longest answers have {} to {} tokens, the "
                             "allocator comes to hold {}; if all had {} tokens: {}",
                             many.count, format_count(many.shortest), format_count(many.longest),
                             format_bytes(many.reserved), format_count(many.longest),
                             format_bytes(many.alike)),
                 "  ", "    ");
}

}  // namespace

std::string resource_lines(const Estimate& e) {
  TextTable table({Align::left, Align::left, Align::left, Align::left});
  // An engine can have room within a share that is more than its process leaves of the GPU.
  const bool share = e.verdict.gpu.fit == Fit::does_not_fit && e.verdict.headroom_bytes >= 0;
  const std::int64_t spare = share ? e.usable_bytes - e.device.upper : e.verdict.headroom_bytes;
  const std::string margin = spare >= 0 ? fmt::format("{} to spare", format_bytes(spare))
                                        : fmt::format("{} too much", format_bytes(-spare));
  table.add({"GPU", verdict_word(e.verdict.gpu.fit),
             fmt::format("{} of {}", format_bytes(e.device.point), format_bytes(e.usable_bytes)),
             fmt::format("{}; upper bound {}", margin, format_bytes(e.device.upper))});
  add_resource(table, "host", e.verdict.host, "host-memory-bytes");
  add_resource(table, "NVMe", e.verdict.nvme, "nvme-bytes");
  return table.text() + groups_apart(e) + iteration_lines(e);
}

std::string breakdown_bars(const Estimate& e, const GpuAbilities& gpu) {
  std::vector<CategoryLine> lines;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](const CategoryLine& a, const CategoryLine& b) {
    return a.at_peak > b.at_peak;
  });
  const double scale = static_cast<double>(std::max(e.device.point, e.usable_bytes));
  constexpr std::size_t kBesideBars = 46;
  const int width = static_cast<int>(
      std::clamp<std::size_t>(TextWidth::current(), kBesideBars + 8, kBesideBars + 40) -
      kBesideBars);
  TextTable table({Align::left, Align::right, Align::left, Align::left});
  for (const CategoryLine& line : lines)
    table.add({category_words(line.category, gpu), format_bytes(line.at_peak),
               std::string(name_of(line.source)),
               bar(static_cast<double>(line.at_peak) / scale, width)});
  table.add({"in all", format_bytes(e.device.point), "",
             bar(static_cast<double>(e.device.point) / scale, width)});
  table.add({"usable", format_bytes(e.usable_bytes), "",
             bar(static_cast<double>(e.usable_bytes) / scale, width)});
  return table.text();
}

Category largest_category(const Estimate& e) {
  return std::max_element(
             e.breakdown.begin(), e.breakdown.end(),
             [](const CategoryLine& a, const CategoryLine& b) { return a.at_peak < b.at_peak; })
      ->category;
}

std::string what_it_is(Category c, const Estimate& e, const Plan& plan) {
  const std::string trained = format_parameters(e.trainable_parameters);
  const std::string tokens =
      format_count(plan.workload.micro_batch * plan.workload.sequence_length);
  switch (c) {
    case Category::parameters:
      if (quantization_of(plan.workload) != Quantization::none)
        return "the weights themselves, most of them in few bits";
      return fmt::format("the weights themselves, {} bytes each", size_of(plan.precision.params));
    case Category::gradients:
      return fmt::format(
          "a gradient of {} bytes for each trained parameter that this GPU looks "
          "after",
          size_of(plan.precision.gradients));
    case Category::master_parameters:
      return fmt::format("a copy of the {} trained parameters that the optimizer updates in fp32",
                         trained);
    case Category::optimizer_states:
      return fmt::format("what {} keeps for the trained parameters, {} in all",
                         plan.optimizer.kind->words, trained);
    case Category::activations:
      if (plan.workload.kind == WorkKind::inference)
        return fmt::format("what one layer makes of {} tokens", tokens);
      return fmt::format("what the layers keep of {} tokens for the backward pass", tokens);
    case Category::logits_and_loss:
      return fmt::format("scores of {} tokens over the whole vocabulary, in fp32 for the loss",
                         tokens);
    case Category::gathered_parameters:
      return "parameters that other GPUs own, gathered while they are used";
    case Category::communication_buffers:
      return "buckets in which gradients are reduced";
    case Category::workspace:
      return "temporary copies, mostly of the optimizer step";
    case Category::fragmentation:
      return "what PyTorch's allocator holds beyond the live tensors";
    case Category::cuda_context:
      return fmt::format("the {} context, kernels and libraries of the process",
                         plan.cluster.gpu.abilities.runtime);
    case Category::nccl:
      return fmt::format("{}'s buffers for talking to the other GPUs",
                         plan.cluster.gpu.abilities.collectives);
    case Category::kv_cache:
      return "keys and values of every token so far, in every layer";
    case Category::other:
      return "the batch, and 16-bit copies of weights under autocast";
  }
  return "";
}

std::string largest_consumer(const Estimate& e, const Plan& plan) {
  const Category c = largest_category(e);
  return wrapped(fmt::format("The largest part, {}, is {}.",
                             category_words(c, plan.cluster.gpu.abilities), what_it_is(c, e, plan)),
                 "  ", "  ");
}

std::int64_t model_states(const Estimate& e) {
  std::int64_t sum = 0;
  for (const CategoryLine& line : e.breakdown)
    if (is_state(line.category)) sum += line.resident;
  return sum;
}

Source model_states_source(const Estimate& e) {
  Source source = Source::exact;
  for (const CategoryLine& line : e.breakdown)
    if (is_state(line.category) && line.resident > 0) source = weaker(source, line.source);
  return source;
}

std::string state_table(const Estimate& e, const GpuAbilities& gpu) {
  TextTable table({Align::left, Align::right, Align::right});
  const auto add = [&](const std::string& name, std::int64_t bytes) {
    table.add({name, format_bytes(bytes),
               fmt::format("{:.3f} B per parameter",
                           static_cast<double>(bytes) / static_cast<double>(e.parameters))});
  };
  for (const CategoryLine& line : e.breakdown)
    if (is_state(line.category)) add(category_words(line.category, gpu), line.resident);
  add("in all", model_states(e));
  return table.text();
}

namespace {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward pass";
    case Phase::backward:
      return "backward pass";
    case Phase::step:
      return "clipping and optimizer step";
    case Phase::prefill:
      return "prompt";
    case Phase::decode:
      return "new tokens";
    case Phase::generation:
      return "generation";
    case Phase::experience:
      return "experience";
    case Phase::actor_training:
      return "actor's training";
    case Phase::critic_training:
      return "critic's training";
  }
  return "";
}

}  // namespace

std::string phase_table(const Estimate& e) {
  TextTable table({Align::left, Align::right, Align::right});
  table.add({"live tensors", "peak", "at its end"});
  table.add({"model built", "", format_bytes(e.model_bytes)});
  for (const Phase phase : e.run) {
    const PhaseBytes& bytes = e.phases[static_cast<std::size_t>(phase)];
    table.add({std::string(phase_name(phase)), format_bytes(bytes.peak), format_bytes(bytes.end)});
  }
  return table.text();
}

std::string traffic_text(const Estimate& e) {
  if (e.traffic.empty()) return "  none\n";
  const bool nodes = std::any_of(e.traffic.begin(), e.traffic.end(), [](const TrafficLine& line) {
    return line.bytes_between_nodes > 0;
  });
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right});
  table.add({"each GPU, each optimizer step", "link", "sent", "calls",
             nodes ? "its share between nodes" : ""});
  for (const TrafficLine& line : e.traffic)
    table.add({std::string(line.what), std::string(name_of(line.link)),
               format_bytes(line.bytes_per_step), format_count(line.count),
               line.bytes_between_nodes > 0 ? format_bytes(line.bytes_between_nodes) : ""});
  return table.text();
}

namespace {

std::string generation_lines(const TimeEstimate& t) {
  const GenerationTime& g = *t.generation;
  const auto count = [](double x) { return format_count(static_cast<std::int64_t>(x)); };
  std::string text =
      fmt::format("  prompt: about {}, {} tokens/s\n", format_seconds(g.prefill_seconds),
                  count(g.prefill_tokens_per_second));
  text +=
      fmt::format("  new tokens: about {}, {:.4g} tokens/s; at most {:.4g} at datasheet rates\n",
                  format_seconds(g.decode_seconds), g.decode_tokens_per_second,
                  g.decode_tokens_per_second * g.decode_seconds / g.decode_speed_of_light);
  std::string parts = fmt::format("{} of both computing", format_seconds(t.compute_seconds));
  if (t.exposed_copy_seconds > 0)
    parts += fmt::format(", {} copying from the host", format_seconds(t.exposed_copy_seconds));
  if (t.exposed_communication_seconds > 0)
    parts +=
        fmt::format(", {} waiting for other GPUs", format_seconds(t.exposed_communication_seconds));
  if (t.idle_seconds > 0)
    parts +=
        fmt::format(", {} waiting for the host to start kernels", format_seconds(t.idle_seconds));
  return text + wrapped(parts, "  ", "  ");
}

}  // namespace

namespace {

/// What the trainer's GPUs and the engine's own do, and which of them the other waits for.
std::string group_lines(const GpuGroups& g) {
  const auto line = [](const char* whose, std::int64_t gpus, double works, double waits) {
    return fmt::format("{} {} GPU{} work{} {} and wait{} {}", whose, gpus, gpus == 1 ? "" : "s",
                       gpus == 1 ? "s" : "", format_seconds(works), gpus == 1 ? "s" : "",
                       waits > 0 ? format_seconds(waits) : "for nothing");
  };
  std::string text =
      line("the trainer's", g.trainer_gpus, g.passes_seconds, g.trainer_waits) + "; " +
      line("the engine's", g.engine_gpus, g.answers_seconds, g.engine_waits) +
      fmt::format("; handing weights over takes both {}. ", format_seconds(g.handover_seconds));
  if (!g.at_once)
    text +=
        "They take turns: steps_off_policy 1 would let the engine go on while the trainer "
        "trains";
  else
    text += g.trainer_waits > 0 ? "The answers decide: more GPUs for the engine would help"
                                : "The training decides: the engine could do with fewer GPUs";
  return wrapped(text, "  ", "  ");
}

/// Of how many GPUs a rate is, where that is a question.
std::string_view on_all(std::int64_t gpus) {
  return gpus > 1 ? " on all GPUs" : "";
}

std::string iteration_lines(const TimeEstimate& t, std::int64_t gpus) {
  TextTable table({Align::left, Align::right});
  for (const TimeEstimate::PhaseTime& phase : t.phases)
    table.add({std::string(phase_name(phase.phase)), format_seconds(phase.seconds)});
  table.add({"an iteration", format_seconds(t.step_seconds)});
  return table.text() +
         fmt::format("  {} tokens/s{}; MFU {:.0f} %\n",
                     format_count(static_cast<std::int64_t>(t.tokens_per_second)), on_all(gpus),
                     100 * t.mfu) +
         (t.groups ? group_lines(*t.groups) : "");
}

}  // namespace

/// What a user can do where the time is the host's more than the GPU's.
std::string host_lines(const TimeEstimate& t) {
  if (!t.host_decides()) return "";
  return wrapped(
      "the host decides this time: the GPU waits for its Python calls, and a slower host takes "
      "longer in proportion. `shardplan probe` measures yours for --machine, `shardplan anchor` "
      "corrects by one step that ran",
      "  ", "  ");
}

/// Where samples have several lengths: what the time is of, beside the peak above.
std::string typical_lines(const Estimate& e) {
  if (!e.typical) return "";
  const std::string step = fmt::format(
      "of a typical step, with {} tokens a sample, {:.0f} % of them padding; its live "
      "tensors peak at {}, those of the longest batch at {}",
      format_count(e.typical->tokens), 100 * (1 - e.typical->counted),
      format_bytes(e.typical->allocated), format_bytes(e.allocated.point));
  return wrapped(step, "  ", "  ");
}

std::string step_error_text(const TimeEstimate& time) {
  if (!time.error) return fmt::format("not known: no {} step was measured", time.kind);
  return fmt::format("{:.0f} % in the mean, {:.0f} % at most, in {} measured {} steps{}",
                     100 * time.error->mean, 100 * std::abs(time.error->largest), time.error->runs,
                     time.error->kind,
                     time.source == Source::assumed ? ", none of them on such a GPU" : "");
}

std::string error_line(const TimeEstimate& time) {
  return wrapped("error of such times: " + step_error_text(time), "  ", "  ");
}

std::vector<std::string> step_error_texts(const std::vector<const Estimate*>& estimates) {
  std::vector<std::string> told;
  for (const Estimate* e : estimates) {
    if (e->serving || e->time.step_seconds <= 0) continue;  // no step has its time
    const std::string error = step_error_text(e->time);
    if (std::find(told.begin(), told.end(), error) == told.end()) told.push_back(error);
  }
  return told;
}

std::string time_lines(const Estimate& e, std::int64_t gpus) {
  const TimeEstimate& t = e.time;
  if (t.step_seconds <= 0) return fmt::format("  not estimated: {}\n", t.unknown_because);
  const std::string error = error_line(t);
  if (t.generation) return generation_lines(t) + error + host_lines(t);
  if (!t.phases.empty()) return iteration_lines(t, gpus) + error + host_lines(t);
  const std::string rates =
      fmt::format("about {} per step, {} tokens/s{}", format_seconds(t.step_seconds),
                  format_count(static_cast<std::int64_t>(t.tokens_per_second)), on_all(gpus));
  std::string parts = fmt::format("{} of it computing", format_seconds(t.compute_seconds));
  // What would be printed as 0.00 ms is left out.
  const auto add = [&](double seconds, std::string_view doing) {
    constexpr double kLeast = 5e-6;
    if (seconds >= kLeast) parts += fmt::format(", {} {}", format_seconds(seconds), doing);
  };
  add(t.exposed_communication_seconds, "waiting for other GPUs");
  add(t.exposed_copy_seconds, "copying to and from the host");
  add(t.optimizer_seconds, "in the optimizer");
  add(t.bubble_seconds, "waiting for other pipeline stages");
  add(t.idle_seconds, "waiting for the host to start kernels");
  const std::string light =
      fmt::format("not less than {} at datasheet rates; MFU {:.0f} %, HFU {:.0f} %",
                  format_seconds(t.speed_of_light_seconds), 100 * t.mfu, 100 * t.hfu);
  return "  " + rates + "\n" + error + wrapped(parts, "  ", "  ") + host_lines(t) + "  " + light +
         "\n" + typical_lines(e);
}

std::string estimate_text(const Estimate& e, const Job& job, const Calibration& calibration,
                          const Cost& cost) {
  std::string text = headline(e, job) + "\n" + resource_lines(e) + tight_text(e);
  text +=
      fmt::format("\nWhat fills the fullest GPU at its peak, in {}\n", phase_words(e.peak_phase));
  text += breakdown_bars(e, job.plan.cluster.gpu.abilities);
  text += "\nModel states on that GPU; gradients when all of them exist\n";
  text += state_table(e, job.plan.cluster.gpu.abilities);
  text += "\nPhases\n" + phase_table(e);
  text += "\nTraffic\n" + traffic_text(e);
  text += "\nTime\n" + time_lines(e, job.plan.cluster.world()) + cost_lines(cost, job.plan.cluster);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

}  // namespace shardplan
