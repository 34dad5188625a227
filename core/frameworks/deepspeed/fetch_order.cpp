#include "frameworks/deepspeed/fetch_order.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

/// Notes the layers of a pass, one after the other.
class Recorder {
 public:
  Recorder(const Model& model, bool backward, std::vector<ModuleEvent>& order)
      : model_(model), backward_(backward), order_(order) {}

  void note(const std::vector<TapeEvent>& tape, std::size_t segment, std::int64_t layer) {
    if (&tape != tape_) in_a_row_ = 0;
    tape_ = &tape;
    // Behind a layer of its own kind, each layer enters the same modules.
    if (++in_a_row_ <= 2) read(tape);
    bool begins_layer = true;
    for (ModuleEvent& event : events_) {
      event.segment = segment;
      event.layer = layer;
      event.begins_layer = std::exchange(begins_layer, false);
      event.begins_pass = std::exchange(begins_, false);
    }
    order_.insert(order_.end(), events_.begin(), events_.end());
  }

 private:
  void read(const std::vector<TapeEvent>& tape) {
    events_.clear();
    bool new_layer = true;
    for (const TapeEvent& e : tape) {
      const bool release = e.kind == TapeEvent::Kind::release;
      if (!release && e.kind != TapeEvent::Kind::fetch) continue;
      events_.push_back({.module = e.id, .release = release, .backward = backward_});
      if (release) continue;
      const std::string_view name = model_.modules[static_cast<std::size_t>(e.id)].name;
      events_.back().containers = entered_.enter(name, std::exchange(new_layer, false));
    }
  }

  const Model& model_;
  bool backward_;
  std::vector<ModuleEvent>& order_;
  EnteredModules entered_;
  const std::vector<TapeEvent>* tape_ = nullptr;
  std::int64_t in_a_row_ = 0;
  std::vector<ModuleEvent> events_;  ///< of the tape
  bool begins_ = true;
};

/// The tape of layer `layer` of a segment, whose first block is number `block`.
const std::vector<TapeEvent>& tape_of(const ModelRun& run, const SegmentRun& s, std::int64_t block,
                                      std::int64_t layer, bool backward) {
  const LayerTapes& tapes =
      s.first && layer == 0 ? *s.first : *detail::stretches(run, s, block + layer, 1).front().tapes;
  return backward ? tapes.backward.backward : tapes.forward.forward;
}

}  // namespace

std::vector<LayerPlace> layers_in_order(const ModelRun& run, const OmittedLayers& omitted,
                                        bool backward) {
  std::vector<LayerPlace> places;
  for (std::size_t s = 0; s < run.segments.size(); ++s) {
    const std::int64_t layers =
        run.segments[s].segment->repeat - (s == omitted.segment ? omitted.count : 0);
    for (std::int64_t layer = 0; layer < layers; ++layer) places.push_back({s, layer});
  }
  if (backward) std::ranges::reverse(places);
  return places;
}

std::vector<ModuleEvent> fetch_order(const Model& model, const ModelRun& run,
                                     const OmittedLayers& omitted) {
  std::vector<std::int64_t> blocks{0};  // before each segment
  for (const SegmentRun& s : run.segments)
    blocks.push_back(blocks.back() + (s.segment->checkpointable ? s.segment->repeat : 0));
  std::vector<ModuleEvent> order;
  for (const bool backward : {false, true}) {
    Recorder recorder(model, backward, order);
    for (const auto [s, layer] : layers_in_order(run, omitted, backward)) {
      const bool behind = s == omitted.segment && layer >= omitted.first;
      const std::int64_t in_model = layer + (behind ? omitted.count : 0);
      recorder.note(tape_of(run, run.segments[s], blocks[s], in_model, backward), s, layer);
    }
  }
  return order;
}

}  // namespace shardplan
