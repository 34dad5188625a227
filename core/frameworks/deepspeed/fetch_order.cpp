#include "frameworks/deepspeed/fetch_order.h"

#include <algorithm>
#include <string_view>

#include "program/program.h"

namespace shardplan {
namespace {

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    parts.push_back(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return parts;
}

/// The modules above a module that a pass enters with it, by the names of parameters: those that
/// hold none, such as activations, have no name here. A list of layers is not called itself.
class EnteredModules {
 public:
  std::int32_t enter(std::string_view path, bool new_layer) {
    std::vector<std::string_view> parts = components(path);
    std::size_t same = 0;
    while (same + 1 < parts.size() && same < path_.size() && parts[same] == path_[same] &&
           !(new_layer && parts[same] == kLayer))
      ++same;
    std::int32_t entered = 0;
    for (std::size_t i = same; i + 1 < parts.size(); ++i)
      if (parts[i + 1] != kLayer) ++entered;
    path_ = std::move(parts);
    return entered;
  }

 private:
  static constexpr std::string_view kLayer = "{}";
  std::vector<std::string_view> path_;
};

/// The hooks of a pass that only notes what is used.
class Recorder {
 public:
  Recorder(const Model& model, const ModelRun& run, bool backward, std::vector<ModuleEvent>& order)
      : model_(model),
        run_(run),
        repeats_(single_layers(run, backward)),
        backward_(backward),
        order_(order),
        reached_(run.segments.size(), 0) {}

  const std::vector<SegmentRepeat>& repeats() const { return repeats_; }

  void enter(ProgramBuilder&, std::size_t k) {
    repeat_ = k;
    const std::size_t segment = repeats_[k].segment;
    const std::int64_t reached = reached_[segment]++;
    layer_ = backward_ ? run_.segments[segment].segment->repeat - 1 - reached : reached;
    new_layer_ = true;
  }
  void fetch(ProgramBuilder&, ModuleId id) {
    const std::string_view name = model_.modules[static_cast<std::size_t>(id)].name;
    note(id, false);
    order_.back().containers = entered_.enter(name, new_layer_);
    order_.back().begins_pass = begins_;
    new_layer_ = begins_ = false;
  }
  void release(ProgramBuilder&, ModuleId id) { note(id, true); }

 private:
  void note(ModuleId id, bool release) {
    order_.push_back({.module = id,
                      .layer = layer_,
                      .release = release,
                      .backward = backward_,
                      .repeat = repeat_});
  }

  const Model& model_;
  const ModelRun& run_;
  std::vector<SegmentRepeat> repeats_;
  bool backward_;
  std::vector<ModuleEvent>& order_;
  std::vector<std::int64_t> reached_;  ///< iterations, by segment
  EnteredModules entered_;
  std::size_t repeat_ = 0;
  std::int64_t layer_ = 0;
  bool new_layer_ = true, begins_ = true;
};

}  // namespace

std::vector<SegmentRepeat> single_layers(const ModelRun& run, bool backward) {
  std::vector<SegmentRepeat> repeats;
  for (std::size_t s = 0; s < run.segments.size(); ++s)
    repeats.insert(repeats.end(), static_cast<std::size_t>(run.segments[s].segment->repeat),
                   {s, 1});
  if (backward) std::ranges::reverse(repeats);
  return repeats;
}

std::vector<ModuleEvent> fetch_order(const Model& model, const ModelRun& run) {
  std::vector<ModuleEvent> order;
  Program notes;
  ProgramBuilder b(notes);
  Recorder ahead(model, run, false, order);
  emit_forward(b, model, run, ahead.repeats(), ahead);
  Recorder back(model, run, true, order);
  emit_backward(b, model, run, back.repeats(), back);
  return order;
}

}  // namespace shardplan
