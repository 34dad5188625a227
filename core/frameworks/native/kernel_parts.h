// The kernels that most work of the native engine is made of.
#pragma once

#include <cstdint>

#include "frameworks/native/sizes.h"
#include "program/kernel.h"

namespace shardplan {

inline Kernel started(const Native& n, KernelKind kind) {
  Kernel k;
  k.kind = kind;
  k.issue = Issue::launch;
  k.type = n.plan.precision.params;
  return k;
}

inline Kernel product(const Native& n, std::int64_t rows, std::int64_t outputs,
                      std::int64_t inner) {
  Kernel k = started(n, KernelKind::product);
  k.issue = Issue::library;
  k.m = rows;
  k.n = outputs;
  k.k = inner;
  k.elements = static_cast<double>(rows) * static_cast<double>(outputs);
  k.bytes = static_cast<double>(n.width) *
            (k.elements + static_cast<double>(inner) * static_cast<double>(rows + outputs));
  return k;
}

/// The same product, added to what is there.
inline Kernel added(const Native& n, Kernel k) {
  k.adds = true;
  k.bytes += static_cast<double>(n.width) * k.elements;
  return k;
}

/// Reads and writes `columns` of each of `rows` in all, and writes `written` of them.
inline Kernel some_rows(const Native& n, KernelKind kind, std::int64_t rows, std::int64_t columns,
                        std::int64_t written) {
  Kernel k = started(n, kind);
  k.bytes = static_cast<double>(rows) * static_cast<double>(columns * n.width);
  k.elements = static_cast<double>(rows) * static_cast<double>(written);
  return k;
}

inline Kernel rows_of(const Native& n, KernelKind kind, std::int64_t columns,
                      std::int64_t written) {
  return some_rows(n, kind, n.rows, columns, written);
}

/// Reads and writes so many bytes of each row, of `written` elements.
inline Kernel pass_over(const Native& n, std::int64_t rows, std::int64_t bytes,
                        std::int64_t written) {
  Kernel k = started(n, KernelKind::elementwise);
  k.bytes = static_cast<double>(rows) * static_cast<double>(bytes);
  k.elements = static_cast<double>(rows) * static_cast<double>(written);
  return k;
}

}  // namespace shardplan
