#include "engine/pretrained.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "engine/initialise.h"
#include "memory/elements.h"
#include "model/pretrained_rows.h"
#include "model/safetensors.h"

namespace shardplan::validator {
namespace {

const StoredTensor* find_stored(const Safetensors& file, const std::string& name) {
  for (const auto* prefix : {"", "model.", "transformer."})
    if (const auto at = file.tensors().find(prefix + name); at != file.tensors().end())
      return &at->second;
  return nullptr;
}

const StoredTensor& find(const Safetensors& file, const std::string& name) {
  if (const StoredTensor* found = find_stored(file, name)) return *found;
  throw InputError({.file = file.path(), .key = name, .message = "this tensor is missing"});
}

/// Where element (row, column) of the engine's rows is stored.
struct Source {
  const StoredTensor& tensor;
  std::int64_t rows, columns;
  bool transposed;
  std::int64_t index(std::int64_t i) const {
    return transposed ? i % columns * rows + i / columns : i;
  }
};

Source checked(const StoredTensor& tensor, const std::string& name, const PretrainedRows& part,
               std::int64_t columns) {
  std::int64_t numel = 1;
  for (const std::int64_t d : tensor.shape) numel *= d;
  if (tensor.shape.empty())
    throw InputError({.file = tensor.file, .key = name, .message = "a tensor without dimensions"});
  const std::int64_t across = part.transposed ? tensor.shape.front() : tensor.shape.back();
  const std::int64_t expected = columns > 1 ? columns : across;
  if (numel != part.count * columns || across != expected)
    throw InputError({.file = tensor.file,
                      .key = name,
                      .message = fmt::format("{} elements", numel),
                      .expected = fmt::format("{} × {}", part.count, columns)});
  return {tensor, part.count, columns, part.transposed};
}

/// Elements [first, first + count) of a source into the device's tensor.
void upload(Backend& device, const Tensor& to, const Source& source, std::int64_t first) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
  host::dispatch(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values;
    for (std::int64_t done = 0; done < to.numel(); done += kChunk) {
      const std::int64_t count = std::min(kChunk, to.numel() - done);
      values.resize(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<T>(
            static_cast<host::Wide<T>>(source.tensor.element(source.index(first + done + i))));
      device.upload(to.slice(done, count), std::as_bytes(std::span(values)));
    }
  });
}

}  // namespace

void load_pretrained(Trainer& trainer, const NetworkSpec& network, const std::string& path) {
  const auto* spec = std::get_if<DecoderSpec>(&network);
  if (spec == nullptr)
    throw InputError({.file = path,
                      .key = "run.weights",
                      .message = "a perceptron starts from random weights",
                      .expected = "no weights"});
  const Safetensors file(path);
  const auto is_stored = [&](const std::string& name) {
    return find_stored(file, name) != nullptr;
  };
  Backend& device = trainer.runtime().device;
  const std::vector<Unit>& units = trainer.network().units();
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Tensor resident = trainer.weights().resident(static_cast<int>(u));
    device.zero(resident);
    const ElementRange here = resident_range(units[u], trainer.sharding());
    for (const ParameterSpec& p : units[u].parameters) {
      const std::int64_t columns = p.whole.dimensions() > 1 ? p.whole.last() : 1;
      for (const PretrainedRows& part : pretrained_rows(*spec, units[u].name, p.name, is_stored)) {
        const Source source = checked(find(file, part.name), part.name, part, columns);
        const std::int64_t start = part.first * columns;
        for_each_run(p, [&](const Run& run) {
          const ElementRange in_run = overlap({run.whole, run.length}, start, part.count * columns);
          const std::int64_t moved = p.offset + run.here - run.whole;
          const ElementRange piece = overlap(here, in_run.first + moved, in_run.count);
          if (piece.count > 0)
            upload(device, resident.slice(piece.first - here.first, piece.count), source,
                   piece.first - moved - start);
        });
      }
    }
    trainer.weights().keep(static_cast<int>(u));
  }
  trainer.begin();
}

}  // namespace shardplan::validator
