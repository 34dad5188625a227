// Every table of options beside the jobs that have it: who lists the options of a job asks this,
// and not what a table is called.
#pragma once

#include <initializer_list>
#include <vector>

#include "frameworks/traits.h"
#include "options/option.h"
#include "plan/plan.h"

namespace shardplan {

/// A set of kinds of work; every kind, unless some are named.
class WorkKinds {
 public:
  constexpr WorkKinds() = default;
  constexpr WorkKinds(std::initializer_list<WorkKind> kinds) : bits_(0) {
    for (const WorkKind kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool has(WorkKind kind) const { return (bits_ & bit(kind)) != 0; }

 private:
  static constexpr unsigned bit(WorkKind kind) { return 1U << static_cast<unsigned>(kind); }
  unsigned bits_ = ~0U;
};

/// Which jobs have the options of a group.
struct OptionScope {
  WorkKinds works = {};
  bool (*frameworks)(const FrameworkTraits&) = nullptr;  ///< null: every one
  const FrameworkTraits* owner =
      nullptr;  ///< whose "framework" object it is; null: of no one alone
  /// What is run, not the model or the machine, which windows ask on pages of their own.
  bool of_run = true;
  /// Where several models take part, each can say them for itself (core/io/load/rlhf.cpp).
  bool of_each_model = false;
};

struct ScopedOptions {
  OptionGroup group;
  OptionScope scope;
};

/// All options of all jobs with their scopes, in the order of all_option_groups() (tables.h).
std::vector<ScopedOptions> all_scoped_options();

/// Whether a job with that plan has them: its work is of such a kind, under such a framework.
bool applies(const OptionScope& scope, const Plan& plan);

}  // namespace shardplan
