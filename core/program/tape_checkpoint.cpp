// What a checkpoint keeps of its segment's input, and how the input is put together again.
#include "program/tape_state.h"

namespace shardplan {

bool TapeState::reenters() const {
  return options_.saved_input.function != CheckpointFunction::torch;
}

/// Whether something else stands for the input between the passes.
bool TapeState::replaces_input() const {
  const SavedInput& how = options_.saved_input;
  const bool checkpointed = mode_ == TapeMode::discard || mode_ == TapeMode::redo;
  return checkpointed && (how.divided || how.on_host) && chained_input() != kNone;
}

ValueId TapeState::chained_input() const {
  for (const Input& in : graph_.inputs())
    if (in.kind == InputKind::chained) return in.value;
  return kNone;
}

std::int64_t TapeState::part_bytes() const {
  const ValueId input = chained_input();
  const std::int64_t whole = bytes_of(graph_.value(input).extent, state(input).dtype);
  return options_.saved_input.divided ? ceil_div(whole, options_.saved_input.ranks) : whole;
}

void TapeState::copy_part(TapeEvent::Kind direction) {
  flush_kernels();
  events_->push_back(
      {direction, Category::other, options_.saved_input.divided ? 1 : 0, part_bytes()});
}

/// The kernel that copies this rank's part, out of the input or into what is gathered.
void TapeState::launch_part_copy() {
  if (!options_.saved_input.divided) return;
  const auto bytes = static_cast<double>(part_bytes());
  const DType type = state(chained_input()).dtype;
  launch(KernelKind::elementwise, Issue::python, type, 2 * bytes,
         bytes / static_cast<double>(size_of(type)));
}

/// DeepSpeed copies a part out before the segment runs (checkpointing.py, partition_activations),
/// and sends it to the host at once.
void TapeState::save_part() {
  const SavedInput& how = options_.saved_input;
  if (!replaces_input() || !how.divided || how.function != CheckpointFunction::deepspeed) return;
  launch_part_copy();
  if (!how.on_host) {
    unref(allocate_kept(part_bytes(), Category::activations));
    return;
  }
  const StorageId part = allocate(part_bytes(), Category::activations);
  copy_part(TapeEvent::Kind::to_host);
  unref(part);
}

/// The segment has run: the tensor that was its input gets other data. Megatron's is the part
/// itself (split_tensor_into_1d_equal_chunks), DeepSpeed's an empty tensor.
void TapeState::replace_input() {
  if (!replaces_input()) return;
  const SavedInput& how = options_.saved_input;
  const bool deepspeed = how.function == CheckpointFunction::deepspeed;
  if (deepspeed && !how.divided) copy_part(TapeEvent::Kind::to_host);
  unref(allocate_kept(deepspeed ? kAllocationUnit : part_bytes(), Category::activations));
  if (!deepspeed) launch_part_copy();
  flush_kernels();
  unref(state(chained_input()).storage);
}

/// What stood for the input gives way to the parts of all ranks, gathered into a new tensor.
/// DeepSpeed first gives the tensor its own part again, from the host where that is.
void TapeState::restore_input() {
  if (!replaces_input()) return;
  const SavedInput& how = options_.saved_input;
  const bool deepspeed = how.function == CheckpointFunction::deepspeed;
  const ValueId input = chained_input();
  StorageId part = kExternal;
  if (how.divided && !how.on_host) part = allocate_kept(part_bytes(), Category::activations);
  if (deepspeed) unref(allocate_kept(kAllocationUnit, Category::activations));
  if (how.on_host) {
    part = allocate(part_bytes(), Category::activations);
    copy_part(TapeEvent::Kind::to_gpu);
  }
  state(input).storage = part;
  if (!how.divided || how.ranks == 1) return;
  const Extent extent = graph_.value(input).extent;
  const DType type = state(input).dtype;
  const StorageId whole = temporary(extent, type);
  if (deepspeed) {  // zeros, and the part in its place
    launch(KernelKind::elementwise, Issue::python, type,
           static_cast<double>(bytes_of(extent, type)), count_of(input));
    launch_part_copy();
  }
  Communication with;
  with.group = Group::tensor;
  add_exchange(Exchange::all_gather, with, bytes_of(extent, type), When::waited);
  unref(part);
  state(input).storage = whole;
}

}  // namespace shardplan
