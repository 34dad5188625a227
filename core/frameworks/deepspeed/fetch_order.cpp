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
  Recorder(const Model& model, LayerCounter layers, std::vector<ModuleUse>& order)
      : model_(model), layers_(std::move(layers)), order_(order) {}

  void enter(ProgramBuilder&, std::size_t k) {
    layer_ = layers_.enter(k);
    new_layer_ = true;
  }
  void fetch(ProgramBuilder&, ModuleId id) {
    const std::string_view name = model_.modules[static_cast<std::size_t>(id)].name;
    order_.push_back({id, layer_, entered_.enter(name, new_layer_), begins_});
    new_layer_ = begins_ = false;
  }

 private:
  const Model& model_;
  LayerCounter layers_;
  std::vector<ModuleUse>& order_;
  EnteredModules entered_;
  std::int64_t layer_ = 0;
  bool new_layer_ = true, begins_ = true;
};

}  // namespace

std::int64_t LayerCounter::enter(std::size_t k) {
  const SegmentRepeat& repeat = repeats_[k];
  const std::int64_t reached = reached_[repeat.segment]++;
  return backward_ ? run_.segments[repeat.segment].segment->repeat - 1 - reached : reached;
}

std::vector<SegmentRepeat> single_layers(const ModelRun& run) {
  std::vector<SegmentRepeat> repeats;
  for (std::size_t s = 0; s < run.segments.size(); ++s)
    repeats.insert(repeats.end(), static_cast<std::size_t>(run.segments[s].segment->repeat),
                   {s, 1});
  return repeats;
}

std::vector<ModuleUse> fetch_order(const Model& model, const ModelRun& run,
                                   const std::vector<SegmentRepeat>& forward,
                                   const std::vector<SegmentRepeat>& backward) {
  std::vector<ModuleUse> order;
  Program notes;
  ProgramBuilder b(notes);
  Recorder ahead(model, {run, forward, false}, order);
  emit_forward(b, model, run, forward, ahead);
  Recorder back(model, {run, backward, true}, order);
  emit_backward(b, model, run, backward, back);
  return order;
}

}  // namespace shardplan
