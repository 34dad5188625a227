#include "program/tape/checkpoint.h"

#include <algorithm>

namespace shardplan::tape {

bool replaces_input(const Graph& graph, TapeMode mode, const TapeOptions& options) {
  const SavedInput& how = options.saved_input;
  const bool checkpointed = mode == TapeMode::discard || mode == TapeMode::redo;
  return checkpointed && (how.divided || how.on_host) &&
         std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [](const Input& in) { return in.kind == InputKind::chained; });
}

bool recomputation_frees_input(const Graph& graph, TapeMode mode, const TapeOptions& options) {
  return mode == TapeMode::redo && options.saved_input.function == CheckpointFunction::torch &&
         replaces_input(graph, mode, options);
}

CheckpointedInput::CheckpointedInput(Parts& parts)
    : p_(parts),
      how_(parts.options.saved_input),
      replaced_(replaces_input(parts.graph(), parts.mode, parts.options)),
      deepspeed_(how_.function == CheckpointFunction::deepspeed),
      input_(parts.view.chained_input()) {
  if (!replaced_) return;
  const std::int64_t whole = p_.view.bytes_of(input_, p_.view.state(input_).dtype);
  part_bytes_ = how_.divided ? ceil_div(whole, how_.ranks) : whole;
}

/// save_on_cpu copies to the host at once, and back as a kernel of the compute stream; hooks with a
/// stream of their own let nobody wait.
void CheckpointedInput::copy(TapeEvent::Kind direction) {
  const bool to_host = direction == TapeEvent::Kind::to_host;
  const bool at_once = !deepspeed_ && to_host && !how_.beside;
  const CopyWait later = to_host ? CopyWait::nobody : CopyWait::compute;
  p_.writer.copy(direction, part_bytes_, how_.divided || at_once ? CopyWait::host : later);
}

/// The kernel that copies this rank's part, out of the input or into what is gathered.
void CheckpointedInput::launch_part_copy() {
  if (!how_.divided) return;
  const auto bytes = static_cast<double>(part_bytes_);
  const DType type = p_.view.state(input_).dtype;
  p_.writer.launch(memory_kernel(KernelKind::elementwise, Issue::python, type, 2 * bytes,
                                 bytes / static_cast<double>(size_of(type))));
}

void CheckpointedInput::save_part() {
  if (!replaced_) return;
  if (leaves_whole()) return copy(TapeEvent::Kind::to_host);
  if (!how_.divided || !deepspeed_) return;
  launch_part_copy();
  if (!how_.on_host) {
    p_.storages.unref(p_.storages.allocate_kept(part_bytes_, Category::activations));
    return;
  }
  const StorageId part = p_.storages.allocate(part_bytes_, Category::activations);
  copy(TapeEvent::Kind::to_host);
  p_.storages.unref(part);
}

void CheckpointedInput::replace() {
  if (!replaced_) return;
  if (leaves_whole()) {
    p_.writer.flush();
    return p_.storages.unref(p_.view.state(input_).storage);
  }
  if (deepspeed_ && !how_.divided) copy(TapeEvent::Kind::to_host);
  const std::int64_t bytes = deepspeed_ ? kAllocationUnit : part_bytes_;
  p_.storages.unref(p_.storages.allocate_kept(bytes, Category::activations));
  if (!deepspeed_) launch_part_copy();
  p_.writer.flush();
  p_.storages.unref(p_.view.state(input_).storage);
}

/// What the input's tensor has before the other ranks' parts come; kExternal: nothing.
StorageId CheckpointedInput::restore_part() {
  StorageId part = kExternal;
  if (how_.divided && !how_.on_host)
    part = p_.storages.allocate_kept(part_bytes_, Category::activations);
  if (deepspeed_)
    p_.storages.unref(p_.storages.allocate_kept(kAllocationUnit, Category::activations));
  if (how_.on_host) {
    part = p_.storages.allocate(part_bytes_, Category::activations);
    copy(TapeEvent::Kind::to_gpu);
  }
  return part;
}

void CheckpointedInput::restore() {
  if (!replaced_) return;
  const StorageId part = restore_part();
  ValueState& input = p_.view.state(input_);
  input.storage = part;
  if (!how_.divided || how_.ranks == 1) return;
  const std::int64_t bytes = p_.view.bytes_of(input_, input.dtype);
  const StorageId whole = p_.storages.allocate(bytes, Category::activations);
  if (deepspeed_) {  // zeros, and the part in its place
    p_.writer.launch(memory_kernel(KernelKind::elementwise, Issue::python, input.dtype,
                                   static_cast<double>(bytes), p_.view.count_of(input_)));
    launch_part_copy();
  }
  p_.writer.exchange(Exchange::all_gather, Group::tensor, bytes, ExchangeStart::waited);
  p_.storages.unref(part);
  input.storage = whole;
}

}  // namespace shardplan::tape
