#include "program/tape/left_names.h"

namespace shardplan::tape {

void leave_to_model(Parts& p) {
  for (const ValueId value : p.graph().named_in_model()) {
    const StorageId id = p.view.state(value).storage;
    if (id == kExternal) continue;
    if (p.storages.of(id).slot == p.run.output_slot)
      p.run.names_output = true;
    else if (p.storages.is_shared(id))
      p.storages.unref(id);
    else
      p.run.named_in_model.push_back(p.storages.free_event(id));
  }
}

void leave_to_output(Parts& p) {
  for (const ValueId value : p.graph().named_in_output()) {
    const StorageId id = p.view.state(value).storage;
    if (id == kExternal) continue;
    if (p.mode == TapeMode::redo || p.storages.is_shared(id))
      p.storages.unref(id);
    else
      p.run.until_forward_ends.push_back(p.storages.free_event(id));
  }
}

void leave_beside(Parts& p) {
  if (p.graph().beside().empty()) return;
  const bool leaves = p.mode == TapeMode::keep || p.mode == TapeMode::discard;
  if (leaves) p.writer.emit(TapeEvent::Kind::drain, Category::activations, 0, 0);
  for (const ValueId value : p.graph().beside()) {
    const StorageId id = p.view.state(value).storage;
    if (id == kExternal) continue;
    if (!leaves || p.storages.is_shared(id))
      p.storages.unref(id);
    else
      p.run.forward_tail.push_back({p.storages.free_event(id), 0});
  }
}

}  // namespace shardplan::tape
