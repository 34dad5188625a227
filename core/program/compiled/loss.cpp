#include "program/compiled/loss.h"

#include <vector>

#include "base/checked.h"
#include "program/tape/loss_chunks.h"

namespace shardplan::compiled {

using tape::StorageId;

const Op* fused_loss(const tape::GraphView& view, const Trace& trace, const Unit& unit) {
  const Node& made = trace.graph.at(unit.writes.front());
  if (made.kind != NodeKind::kernel || made.backward) return nullptr;
  const Op& op = view.graph().ops()[static_cast<std::size_t>(made.op)];
  const bool result = op.kind == OpKind::fused_linear_loss && unit.writes.front() == trace.output;
  return result ? &op : nullptr;
}

void allocate_loss(const tape::GraphView& view, const Op& op, bool cut, tape::Storages& storages,
                   const std::function<void(std::int64_t)>& time) {
  const tape::LossChunks chunks(view, op);
  const auto allocate = [&](std::int64_t elements, DType type) {
    return storages.allocate(checked_mul(elements, size_of(type)), Category::logits_and_loss);
  };
  const StorageId labels = allocate(chunks.tokens, DType::i64);
  const StorageId counted = allocate(chunks.tokens, DType::b1);
  const StorageId losses = allocate(chunks.tokens, DType::f32);
  const bool trains = view.trains(op.weight);
  std::vector<StorageId> logits, results;
  for (std::int64_t first = 0; first < chunks.tokens; first += chunks.chunk) {
    const std::int64_t rows = std::min(chunks.chunk, chunks.tokens - first);
    const bool first_one = logits.empty();
    if (first_one || (trains && !cut))
      logits.push_back(allocate(checked_mul(rows, chunks.vocabulary), view.regime().compute));
    time(first / chunks.chunk);
    if (first_one || !trains || !cut)
      results.push_back(allocate(checked_mul(rows, chunks.width), view.state(op.in[0]).dtype));
  }
  for (const StorageId id : results) storages.unref(id);
  std::vector<StorageId> tables;
  for (const StorageId id : logits) {
    if (trains && tables.size() < 2)
      tables.push_back(allocate(view.parameter(op.weight).numel, view.parameter_type(op.weight)));
    storages.unref(id);
  }
  for (const StorageId id : tables) storages.unref(id);
  for (const StorageId id : {losses, counted, labels}) storages.unref(id);
}

}  // namespace shardplan::compiled
