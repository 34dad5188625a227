#include "optimizers/states.h"

namespace shardplan {

std::int64_t size_of(StateType type, const StateTypes& types, const Updated& tensor) {
  switch (type) {
    case StateType::plan:
      return tensor.given != Given::flat && tensor.parameter->adapter ? size_of(DType::f32)
                                                                      : size_of(types.plan);
    case StateType::fp32:
      return size_of(DType::f32);
    case StateType::half:
      return size_of(DType::bf16);
    case StateType::byte:
      return 1;
    case StateType::gradient:
      return size_of(types.gradient);
    case StateType::widened:
      return size_of(StateType::plan, types, tensor) < 4 ? size_of(DType::f32) : 0;
  }
  return 0;
}

StateBytes& StateBytes::operator+=(const StateBytes& more) {
  resident = checked_add(resident, more.resident);
  paged = checked_add(paged, more.paged);
  return *this;
}

StateBytes state_bytes(const Updated& tensor, const Optimizer& optimizer, const StateTypes& types) {
  StateBytes sum;
  for_each_state(tensor, optimizer, types, [&](std::int64_t bytes, bool paged) {
    sum += paged ? StateBytes{0, bytes} : StateBytes{bytes, 0};
  });
  return sum;
}

std::int64_t temporary_bytes(const Temporary& temporary, const Updated& tensor,
                             const Optimizer& optimizer, const StateTypes& types) {
  const std::int64_t elements =
      temporary.elements == nullptr ? tensor.numel : temporary.elements(tensor, optimizer);
  return checked_mul(elements, size_of(temporary.type, types, tensor));
}

std::int64_t flat_temporary_bytes(const Updated& buffer, const Optimizer& optimizer,
                                  const StateTypes& types) {
  std::int64_t sum = 0;
  for (const Temporary& t : variant_of(optimizer).temporaries)
    sum = checked_add(sum, checked_mul(t.count, temporary_bytes(t, buffer, optimizer, types)));
  return sum;
}

}  // namespace shardplan
