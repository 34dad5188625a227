#include "program/compiled/trials.h"

#include <utility>

#include "base/checked.h"
#include "base/fnv.h"

namespace shardplan::compiled {
namespace {

/// Stands for the operands and results of one product, of random numbers, and for copies of them
/// (torch/_inductor/fx_passes/pad_mm.py, _should_pad). An allocator's history of GPT-2 medium shows
/// the same blocks in this order.
class Trials {
 public:
  /// `longer`: copies that the product with longer rows reads, and its result.
  void time(std::int64_t left, std::int64_t right, std::int64_t result,
            std::vector<std::int64_t> longer) {
    all(TapeEvent::Kind::alloc, {left, right});
    all(TapeEvent::Kind::alloc, {result});
    all(TapeEvent::Kind::free, {result});
    all(TapeEvent::Kind::alloc, longer);
    all(TapeEvent::Kind::free, longer);
    all(TapeEvent::Kind::free, {left, right});
  }

  std::vector<TapeEvent> take() { return std::exchange(events_, {}); }

 private:
  void all(TapeEvent::Kind kind, const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t bytes : sizes) {
      TapeEvent e;
      e.kind = kind;
      e.category = Category::workspace;
      e.bytes = round_up(bytes, kAllocationUnit);
      events_.push_back(e);
    }
  }

  std::vector<TapeEvent> events_;
};

}  // namespace

std::vector<TapeEvent> trial_events(const std::vector<TimedProduct>& products) {
  Trials trials;
  for (auto p = products.rbegin(); p != products.rend(); ++p) {
    const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
      return checked_mul(checked_mul(rows, columns), size_of(p->type));
    };
    const std::int64_t x = bytes(p->size.rows, p->size.summed);
    const std::int64_t w = bytes(p->size.summed, p->size.columns);
    const std::int64_t y = bytes(p->size.rows, p->size.columns);
    const std::int64_t longer_w = bytes(p->size.summed, p->padded);
    const std::int64_t longer_y = bytes(p->size.rows, p->padded);
    if (p->input_grad) trials.time(y, w, x, {longer_y, longer_w, x});
    if (p->weight_grad) trials.time(y, x, w, {longer_y, longer_w});
    trials.time(x, w, y, {longer_w, longer_y});
  }
  return trials.take();
}

void KernelTrials::time(const JointGraph& graph, const Unit& unit, std::int64_t which) {
  if (cache_ == 0) return;
  Fnv hash;
  const auto add = [&](std::int64_t number) { hash.add(static_cast<std::uint64_t>(number)); };
  for (const std::int64_t number : {unit.span, which, std::int64_t{unit.reduces}}) add(number);
  for (const auto* list : {&unit.reads, &unit.writes})
    for (const NodeId id : *list)
      add(checked_mul(graph.at(id).elements, size_of(graph.at(id).type)));
  writer_.emit(TapeEvent::Kind::timed, Category::workspace,
               static_cast<std::int32_t>(hash.value() >> 33U), cache_);
}

}  // namespace shardplan::compiled
