#include "render/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "formats/dtype.h"
#include "program/category.h"
#include "save/estimate.h"
#include "simulator/memory.h"

namespace shardplan {
namespace {

using Json = nlohmann::ordered_json;

enum Track : int { kHost = 0, kCompute = 1, kCommunication = 2, kCopies = 3, kPhases = 4 };
constexpr double kMicro = 1e6;

int track_of(const Span& span) {
  if (span.host) return kHost;
  switch (span.stream) {
    case Stream::compute:
    case Stream::graphs:
    case Stream::engine:
      return kCompute;
    case Stream::communication:
      return kCommunication;
    case Stream::copy:
    case Stream::staging:
      return kCopies;
  }
  return kCompute;
}

std::string label_of(const Span& span, const Program& program) {
  if (span.kernel != nullptr) return kernel_label(*span.kernel);
  const Event& e = program.events[span.event];
  if (e.kind == Event::Kind::host_optimizer) return "optimizer on the host";
  return std::string(e.what);
}

Json arguments_of(const Span& span, const Program& program) {
  if (span.kernel != nullptr) {
    Json args = {{"calls", span.kernel->calls}};
    if (const double flops = flops_of(*span.kernel); flops > 0) args["flops"] = flops;
    if (span.kernel->bytes > 0) args["bytes"] = span.kernel->bytes * span.kernel->calls;
    return args;
  }
  const Event& e = program.events[span.event];
  return {{"bytes", e.bytes}, {"calls", e.count}};
}

void add_names(Json& events, const SimulatedRank& r, std::string_view title) {
  const auto meta = [&](const char* name, int thread, const std::string& value) {
    events.push_back({{"ph", "M"},
                      {"name", name},
                      {"pid", r.rank},
                      {"tid", thread},
                      {"args", {{"name", value}}}});
  };
  meta("process_name", 0, fmt::format("{}: {}, {}", r.name, title, r.what));
  meta("thread_name", kPhases, "phase");
  meta("thread_name", kHost, "host");
  meta("thread_name", kCompute, "compute stream");
  meta("thread_name", kCommunication, "communication stream");
  meta("thread_name", kCopies, "copy stream");
  constexpr std::array kFromTheTop{kPhases, kHost, kCompute, kCommunication, kCopies};
  for (std::size_t i = 0; i < kFromTheTop.size(); ++i)
    events.push_back({{"ph", "M"},
                      {"name", "thread_sort_index"},
                      {"pid", r.rank},
                      {"tid", kFromTheTop[i]},
                      {"args", {{"sort_index", i}}}});
}

/// What belongs to no event of the program: the phases, and the wait for other stages.
void add_phases(Json& events, const SimulatedRank& r) {
  const auto add = [&](int track, std::string_view name, double start, double seconds) {
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"pid", r.rank},
                      {"tid", track},
                      {"ts", start * kMicro},
                      {"dur", seconds * kMicro}});
  };
  for (const PhaseSpan& phase : r.trace.phases)
    add(kPhases, name_of(phase.phase), phase.start, phase.end - phase.start);
  if (r.times.bubble > 0)
    add(kCompute, "waiting for other pipeline stages", r.trace.bubble_start, r.times.bubble);
}

/// One sample for each moment at which anything changed: the most of it.
void add_memory(Json& events, const SimulatedRank& r) {
  CategoryBytes live{};
  for (const Event& e : r.program->resident) live[index_of(e.category)] += e.bytes * e.count;
  const auto total = [&] {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : live) sum += bytes;
    return sum;
  };
  const auto sample = [&](double at) {
    Json args = Json::object();
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      if (live[c] != 0) args[std::string(name_of(static_cast<Category>(c)))] = live[c];
    events.push_back({{"ph", "C"},
                      {"name", "live bytes"},
                      {"pid", r.rank},
                      {"tid", 0},
                      {"ts", at * kMicro},
                      {"args", std::move(args)}});
  };
  sample(0);
  std::int64_t peak = total();
  double peak_at = 0;
  for (std::size_t i = 0; i < r.trace.memory.size(); ++i) {
    const MemoryChange& change = r.trace.memory[i];
    live[index_of(change.category)] += change.bytes;
    if (const std::int64_t now = total(); now > peak) {
      peak = now;
      peak_at = change.at;
      sample(change.at);
      continue;
    }
    const bool last = i + 1 == r.trace.memory.size() || r.trace.memory[i + 1].at > change.at;
    if (last) sample(change.at);
  }
  events.push_back({{"ph", "i"},
                    {"s", "p"},
                    {"name", "peak of live bytes"},
                    {"pid", r.rank},
                    {"tid", 0},
                    {"ts", peak_at * kMicro},
                    {"args", {{"bytes", peak}}}});
}

}  // namespace

std::string kernel_label(const Kernel& k) {
  const std::string_view type = name_of(k.type);
  switch (k.kind) {
    case KernelKind::product:
      return k.batch > 1 ? fmt::format("product {} of {}×{}×{} {}", k.batch, k.m, k.n, k.k, type)
                         : fmt::format("product {}×{}×{} {}", k.m, k.n, k.k, type);
    case KernelKind::attention:
    case KernelKind::attention_backward:
      return fmt::format("{} {} heads of {}×{}, {} wide{} {}", name_of(k.kind), k.batch, k.m, k.n,
                         k.k, k.causal ? ", causal" : "", type);
    default:
      return fmt::format("{} {}", name_of(k.kind), type);
  }
}

std::string trace_json(const std::vector<SimulatedRank>& ranks, std::string_view title) {
  Json events = Json::array();
  for (const SimulatedRank& r : ranks) {
    add_names(events, r, title);
    add_phases(events, r);
    for (const Span& span : r.trace.spans)
      events.push_back({{"ph", "X"},
                        {"name", label_of(span, *r.program)},
                        {"pid", r.rank},
                        {"tid", track_of(span)},
                        {"ts", span.start * kMicro},
                        {"dur", span.seconds * kMicro},
                        {"args", arguments_of(span, *r.program)}});
    add_memory(events, r);
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace shardplan
