#include "program/tape/gradients.h"

#include <algorithm>

namespace shardplan::tape {

StorageId Gradients::allocate_like(ValueId value, DType type) {
  return storages_.allocate(view_.bytes_of(value, type), view_.category_of(value));
}

void Gradients::give(ValueId value, StorageId gradient, bool viewed) {
  while (view_.state(value).same != kNone) value = view_.state(value).same;
  if (!view_.state(value).needs_grad)
    storages_.unref(gradient);
  else if (!has(value))
    at(value) = {gradient, true, viewed};
  else
    waiting_.push_back({value, gradient});
}

void Gradients::settle() {
  for (const Given& given : waiting_) add(given);
  waiting_.clear();
}

void Gradients::add(const Given& given) {
  const auto [value, gradient] = given;
  const DType type = view_.state(value).dtype;
  writer_.launch(memory_kernel(KernelKind::elementwise, Issue::inner, type,
                               3 * view_.moved(value, type), view_.count_of(value)));
  if (storages_.is_shared(storage(value)) || of(value).viewed) {
    const StorageId sum = allocate_like(value, type);
    storages_.unref(storage(value));
    set(value, sum);
  }
  storages_.unref(gradient);
}

void Gradients::drop(ValueId value) {
  if (!has(value)) return;
  storages_.unref(storage(value));
  at(value).present = false;
}

void Gradients::give_parameter(ParameterId id) {
  if (!view_.trains(id)) return;
  const std::int64_t bytes = view_.bytes_of(view_.parameter(id), view_.parameter_type(id));
  const auto place = static_cast<std::size_t>(id);
  if (given_.size() <= place) given_.resize(place + 1);
  if (given_[place]) {
    storages_.unref(storages_.allocate(bytes, Category::gradients));
    return;
  }
  given_[place] = true;
  const std::int64_t rounded = round_up(bytes, kAllocationUnit);
  writer_.emit(TapeEvent::Kind::gradient, Category::gradients, id, rounded);
  taken_.push_back({TapeEvent::Kind::added, Category::gradients, id, rounded});
}

void Gradients::give_to_sum(ParameterId id) {
  give_parameter(id);
  if (!taken_.empty() && taken_.back().id == id) taken_.back().kind = TapeEvent::Kind::summed;
}

void Gradients::hand_over() {
  for (const TapeEvent& event : taken_) {
    if (event.kind == TapeEvent::Kind::summed)
      storages_.unref(storages_.allocate(event.bytes, Category::gradients));
    writer_.emit(event);
  }
  taken_.clear();
}

}  // namespace shardplan::tape
