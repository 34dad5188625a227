#include "lowering/loaded_weights.h"

#include "base/checked.h"
#include "lowering/stored_weights.h"
#include "program/tape.h"

namespace shardplan {
namespace {

class Loader {
 public:
  Loader(const Model& model, const Plan& plan)
      : model_(model), plan_(plan), base_(quantization_of(plan.workload)) {}

  std::vector<Event> run() {
    warm_up();
    load([](const Parameter& p, std::int64_t repeat) { return !p.quantized() && repeat == 1; });
    load([](const Parameter& p, std::int64_t repeat) { return p.quantized() || repeat > 1; });
    if (plan_.kept_type() != plan_.precision.params) {
      widen();
      add(Event::Kind::empty_cache, 0, 1);
    }
    add_adapters();
    return std::move(list_);
  }

 private:
  void add(Event::Kind kind, std::int64_t bytes, std::int64_t count) {
    Event e;
    e.kind = kind;
    e.category = Category::parameters;
    e.bytes = bytes;
    e.count = count;
    list_.push_back(e);
  }
  void alloc(std::int64_t bytes, std::int64_t count) { add(Event::Kind::alloc, bytes, count); }
  void free(std::int64_t bytes, std::int64_t count) { add(Event::Kind::free, bytes, count); }

  template <typename Visit>
  void for_each_of_base(Visit&& visit) const {
    model_.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
      if (!p.adapter) visit(p, repeat);
    });
  }

  std::int64_t whole_bytes(const Parameter& p) const {
    return round_up(checked_mul(p.numel, size_of(plan_.precision.params)), kAllocationUnit);
  }
  std::int64_t kept_bytes(const Parameter& p) const {
    return stored_bytes(p, plan_.kept_type(), base_);
  }
  /// Of a packed weight without its scales, which come of quantizing it.
  std::int64_t file_bytes(const Parameter& p) const {
    return p.quantized() ? bytes_of_parts(format_of(base_), p.numel, p.shape.front()).front()
                         : checked_mul(p.numel, size_of(plan_.precision.params));
  }

  void warm_up() {
    std::int64_t sum = 0;
    for_each_of_base([&](const Parameter& p, std::int64_t repeat) {
      sum = checked_add(sum, checked_mul(file_bytes(p), repeat));
    });
    alloc(sum, 1);
    free(sum, 1);
  }

  template <typename Chosen>
  void load(Chosen chosen) {
    for_each_of_base([&](const Parameter& p, std::int64_t repeat) {
      if (!chosen(p, repeat)) return;
      alloc(whole_bytes(p), repeat);
      if (!p.quantized()) return;
      alloc(kept_bytes(p), repeat);
      free(whole_bytes(p), repeat);
    });
  }

  void widen() {
    for_each_of_base([&](const Parameter& p, std::int64_t repeat) {
      if (p.quantized()) return;
      alloc(kept_bytes(p), repeat);
      free(whole_bytes(p), repeat);
    });
  }

  void add_adapters() {
    model_.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
      if (p.adapter) alloc(kept_bytes(p), repeat);
    });
  }

  const Model& model_;
  const Plan& plan_;
  Quantization base_;
  std::vector<Event> list_;
};

}  // namespace

std::vector<Event> load_packed_model(const Model& model, const Plan& plan) {
  return Loader(model, plan).run();
}

}  // namespace shardplan
