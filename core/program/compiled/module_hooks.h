// Hooks around modules that cut a compiled model (TapeOptions::module_hooks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/graph.h"
#include "program/tape/writer.h"

namespace shardplan::compiled {

/// Fetches a module's parameters before its graph runs, and again in its turn of the backward pass.
class ModuleHooks {
 public:
  /// `parts`: by operation, its graph (parts_at_modules); empty: there are no hooks.
  ModuleHooks(tape::TapeWriter& writer, const Graph& graph, const std::vector<std::int32_t>& parts)
      : writer_(writer), graph_(graph), are_there_(!parts.empty()) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (const ModuleId module = graph.ops()[i].module; module != kNone && parts[i] != kNone)
        module_of_[parts[i]] = module;
  }

  /// `op`: one of graph `part`; kNone: of none.
  void enter(std::int32_t part, std::int32_t op) {
    if (!are_there_ || op == kNone) return;
    const auto known = module_of_.find(part);
    const ModuleId module = part == kNone ? graph_.ops()[static_cast<std::size_t>(op)].module
                            : known == module_of_.end() ? kNone
                                                        : known->second;
    if (module == module_) return;
    leave();
    module_ = module;
    if (module_ != kNone) emit(TapeEvent::Kind::fetch);
  }
  void leave() {
    if (module_ != kNone) emit(TapeEvent::Kind::release);
    module_ = kNone;
  }

 private:
  void emit(TapeEvent::Kind kind) { writer_.emit(kind, Category::gathered_parameters, module_, 0); }

  tape::TapeWriter& writer_;
  const Graph& graph_;
  bool are_there_;
  std::map<std::int32_t, ModuleId> module_of_;  ///< by graph
  ModuleId module_ = kNone;                     ///< whose parameters are there
};

}  // namespace shardplan::compiled
