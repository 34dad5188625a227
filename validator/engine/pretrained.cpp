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
  // peft's files have names of their own.
  for (const auto* prefix :
       {"", "model.", "transformer.", "base_model.model.model.", "base_model.model.transformer."})
    if (const auto at = file.tensors().find(prefix + name); at != file.tensors().end())
      return &at->second;
  return nullptr;
}

const StoredTensor& find(const Safetensors& file, const std::string& name) {
  if (const StoredTensor* found = find_stored(file, name)) return *found;
  throw InputError({.file = file.path(), .key = name, .message = "this tensor is missing"});
}

/// Where the elements of the engine's rows are stored.
struct RowSource {
  const StoredTensor& tensor;
  PretrainedRows rows;
  std::int64_t columns;
};

RowSource checked(const StoredTensor& tensor, const std::string& name, const PretrainedRows& part,
                  std::int64_t columns) {
  std::int64_t numel = 1;
  for (const std::int64_t d : tensor.shape) numel *= d;
  if (tensor.dtype == DType::i8)
    throw InputError(
        {.file = tensor.file, .key = name, .message = "values of type 'I8' are no weights"});
  if (tensor.shape.empty())
    throw InputError({.file = tensor.file, .key = name, .message = "a tensor without dimensions"});
  const std::int64_t across = part.transposed ? tensor.shape.front() : tensor.shape.back();
  const std::int64_t expected = columns > 1 ? columns * part.experts_last : across;
  if (numel != part.count * columns || across != expected)
    throw InputError({.file = tensor.file,
                      .key = name,
                      .message = fmt::format("{} elements", numel),
                      .expected = fmt::format("{} × {}", part.count, columns)});
  return {tensor, part, columns};
}

/// Elements [first, first + count) of a source into the device's tensor.
void upload(Backend& device, const Tensor& to, const RowSource& source, std::int64_t first) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
  host::dispatch(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values;
    for (std::int64_t done = 0; done < to.numel(); done += kChunk) {
      const std::int64_t count = std::min(kChunk, to.numel() - done);
      values.resize(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<host::Wide<T>>(
            source.tensor.element(source.rows.stored_at(first + done + i, source.columns))));
      device.upload(to.slice(done, count), std::as_bytes(std::span(values)));
    }
  });
}

/// What a checkpoint is read into.
struct Loading {
  Trainer& trainer;
  const DecoderSpec& spec;
  const Safetensors& file;

  bool has(const std::string& name) const { return find_stored(file, name) != nullptr; }
  std::vector<PretrainedRows> rows_of(const std::string& unit, const std::string& parameter) const {
    return pretrained_rows(spec, unit, parameter,
                           [&](const std::string& name) { return has(name); });
  }
};

/// Those of a parameter's elements that `resident` holds, which are `here` of its unit. `unit`: as
/// a checkpoint's rows are found by.
void load_parameter(const Loading& from, const std::string& unit, const ParameterSpec& p,
                    const Tensor& resident, const ElementRange& here) {
  const std::int64_t columns = p.whole.dimensions() > 1 ? p.whole.last() : 1;
  for (const PretrainedRows& part : from.rows_of(unit, p.name)) {
    const RowSource source = checked(find(from.file, part.name), part.name, part, columns);
    const std::int64_t start = part.first * columns;
    for_each_run(p, [&](const Run& run) {
      const ElementRange in_run = overlap({run.whole, run.length}, start, part.count * columns);
      const std::int64_t moved = p.offset + run.here - run.whole;
      const ElementRange piece = overlap(here, in_run.first + moved, in_run.count);
      if (piece.count > 0)
        upload(from.trainer.runtime().device, resident.slice(piece.first - here.first, piece.count),
               source, piece.first - moved - start);
    });
  }
}

void load_quantized(const Loading& from, const Unit& unit, int index) {
  Trainer& trainer = from.trainer;
  const std::string block = unit.name.substr(0, unit.name.rfind('.'));
  quantize_unit(
      trainer.runtime(), unit, trainer.sharding(), trainer.weights(), index,
      trainer.network().widened(), [&](const ParameterSpec& p, const Tensor& place) {
        load_parameter(from, block, p, place.view({place.numel()}), {p.offset, place.numel()});
      });
}

void load_unit(const Loading& from, const Unit& unit, int index) {
  if (!unit.quantized.empty()) return load_quantized(from, unit, index);
  Trainer& trainer = from.trainer;
  const Tensor resident = trainer.weights().resident(index);
  const ElementRange here = resident_range(unit, trainer.sharding());
  // A checkpoint of the base alone: adapters begin as they do without one.
  if (unit.adapts() &&
      !from.has(from.rows_of(unit.name, unit.parameters.front().name).front().name))
    return initialise_unit(trainer.runtime(), unit, trainer.sharding(), resident, trainer.seed());
  trainer.runtime().device.zero(resident);
  for (const ParameterSpec& p : unit.parameters) load_parameter(from, unit.name, p, resident, here);
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
  const Loading loading{trainer, *spec, file};
  const std::vector<Unit>& units = trainer.network().units();
  for (std::size_t u = 0; u < units.size(); ++u) {
    load_unit(loading, units[u], static_cast<int>(u));
    trainer.weights().keep(static_cast<int>(u));
  }
  trainer.begin();
}

}  // namespace shardplan::validator
