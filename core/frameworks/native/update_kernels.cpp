// The kernels of an update, and of a perceptron's layers.
#include "frameworks/native/kernel_parts.h"
#include "frameworks/native/kernels.h"
#include "lowering/optimizer_kernels.h"

namespace shardplan {

std::vector<Kernel> native_update(const Native& n) {
  const Precision& p = n.plan.precision;
  double owned = 0;
  std::int64_t units = 0;
  for (const NativeUnit& u : n.layout.units()) {
    if (u.frozen) continue;
    owned += static_cast<double>(n.shard(u)) * static_cast<double>(u.count);
    units += u.count;
  }
  const auto calls = static_cast<std::int32_t>(units);
  // Reads the gradient; reads and writes both moments and where the update lives; writes the copy.
  const double home = 2.0 * static_cast<double>(p.master ? size_of(*p.master) + 1 : n.width);
  const double bytes =
      static_cast<double>(n.width) + 4.0 * static_cast<double>(size_of(p.optimizer_states)) + home;
  return {sweep(owned * static_cast<double>(n.width), p.params, calls),
          sweep(owned * bytes, p.optimizer_states, calls)};
}

std::vector<Kernel> native_layer_forward(const Native& n, std::size_t layer) {
  const std::int64_t inputs = n.layout.widths[layer], outputs = n.layout.widths[layer + 1];
  return {product(n, n.rows, outputs, inputs),
          rows_of(n, KernelKind::elementwise, 2 * outputs, outputs)};
}

std::vector<Kernel> native_layer_backward(const Native& n, std::size_t layer) {
  const std::int64_t inputs = n.layout.widths[layer], outputs = n.layout.widths[layer + 1];
  std::vector<Kernel> list{product(n, outputs, inputs, n.rows)};
  if (layer > 0) {
    list.push_back(product(n, n.rows, inputs, outputs));
    list.push_back(rows_of(n, KernelKind::elementwise, 3 * inputs, inputs));
  }
  return list;
}

}  // namespace shardplan
