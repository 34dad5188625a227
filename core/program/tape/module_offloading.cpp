#include "program/tape/module_offloading.h"

#include <algorithm>

#include "base/checked.h"
#include "program/pinned_memory.h"

namespace shardplan::tape {
namespace {

// Python's work for a tensor: the hook, a buffer of the pool, a copy, a mark for the allocator.
constexpr std::int32_t kCallsOfModuleHook = 4;

bool is_norm(const Op& op) {
  return op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm;
}

}  // namespace

/// Attention stands between the linear before it, which has the layer's norm in it, and the one
/// behind it. Experts have a norm of their own before their router.
std::vector<SentModule> modules_of(const Graph& graph) {
  const auto& ops = graph.ops();
  std::vector<SentModule> modules(ops.size(), SentModule::none);
  const auto attends = [](const Op& op) { return op.kind == OpKind::sdpa; };
  const auto at = std::ranges::find_if(ops, attends);
  if (at == ops.end() || std::ranges::count_if(ops, attends) > 1) return modules;
  const auto attention = static_cast<std::size_t>(at - ops.begin());
  modules[attention] = SentModule::core_attn;
  bool before_linear = true;
  for (std::size_t i = 0; i < attention; ++i) {
    const bool linear = ops[i].kind == OpKind::linear;
    if (linear || (before_linear && is_norm(ops[i]))) modules[i] = SentModule::qkv_linear;
    before_linear = before_linear && !linear;
  }
  const bool sparse =
      std::ranges::any_of(ops, [](const Op& op) { return op.kind == OpKind::grouped_linear; });
  bool projected = false;
  for (std::size_t i = attention + 1; i < ops.size(); ++i) {
    if (!projected && ops[i].kind == OpKind::linear) {
      modules[i] = SentModule::attn_proj;
      projected = true;
    } else if (projected && sparse && is_norm(ops[i])) {
      modules[i] = SentModule::mlp_norm;
      break;
    }
  }
  return modules;
}

ModuleOffloading::ModuleOffloading(Storages& storages, TapeWriter& writer, const Graph& graph,
                                   const SentModules& sent, std::int64_t element)
    : storages_(storages), writer_(writer), sent_(sent), element_(element) {
  if (sent.active && sent.modules != 0) modules_ = modules_of(graph);
}

std::int64_t ModuleOffloading::bytes_of(StorageId id, const SavedView& view) const {
  return view.bytes > 0 ? round_up(view.bytes, kAllocationUnit) : storages_.of(id).bytes;
}

bool ModuleOffloading::takes(std::size_t node, StorageId id, const SavedView& view) const {
  if (modules_.empty() || (sent_.modules & bit_of(modules_[node])) == 0) return false;
  if (modules_[node] == SentModule::none) return false;
  const std::int64_t element = view.element > 0 ? view.element : element_;
  return bytes_of(id, view) / element >= sent_.least_size;
}

std::int32_t ModuleOffloading::send(std::size_t node, StorageId id, const SavedView& view) {
  const SentModule module = modules_[node];
  const auto known = std::ranges::find_if(tensors_, [&](const Sent& s) {
    return s.id == id && s.part == view.part && s.module == module;
  });
  if (known != tensors_.end()) return static_cast<std::int32_t>(known - tensors_.begin());
  const Sent sent{id, view.part, module, bytes_of(id, view), storages_.of(id).category, kExternal};
  // What is not contiguous is copied before it is sent.
  if (view.part != kNone)
    storages_.unref(storages_.allocate(sent.bytes, sent.category, Stream::copy));
  writer_.python_calls(kCallsOfModuleHook);
  writer_.copy(TapeEvent::Kind::to_host, sent.bytes, CopyWait::nobody);
  storages_.ref(id);
  bytes_ = checked_add(bytes_, sent.bytes);
  pinned_ = checked_add(pinned_, pinned_block(sent.bytes));
  tensors_.push_back(sent);
  return static_cast<std::int32_t>(tensors_.size() - 1);
}

StorageId ModuleOffloading::bring_back(std::int32_t number) {
  const StorageId id = tensors_[static_cast<std::size_t>(number)].back;
  storages_.ref(id);
  return id;
}

std::vector<TailedFree> ModuleOffloading::leave_sending() {
  std::vector<TailedFree> left;
  if (!active()) return left;
  writer_.wait_for_copies(bytes_);
  writer_.emit(TapeEvent::Kind::drain, Category::activations, 0, 0);
  for (const Sent& sent : tensors_) {
    const Storage& storage = storages_.of(sent.id);
    if (storage.refs > 1 || storage.exported || storage.slot < 0)
      storages_.unref(sent.id);
    else
      left.push_back({storages_.free_event(sent.id), 0});
  }
  return left;
}

/// The copies that are asked for here stand for those of the layer before, as large as these.
void ModuleOffloading::begin_backward() {
  if (tensors_.empty()) return;
  writer_.wait_for_copies(0);
  writer_.copies_follow();
  for (Sent& sent : tensors_) {
    sent.back = storages_.allocate(sent.bytes, sent.category, Stream::copy);
    writer_.python_calls(kCallsOfModuleHook);
    writer_.copy(TapeEvent::Kind::to_gpu, sent.bytes, CopyWait::nobody);
  }
}

void ModuleOffloading::end_backward() {
  for (const Sent& sent : tensors_) storages_.unref(sent.back);
}

}  // namespace shardplan::tape
