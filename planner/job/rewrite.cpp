#include "job/rewrite.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "frameworks/deepspeed/config_table.h"
#include "frameworks/registry.h"
#include "job/cluster_json.h"
#include "job/fields.h"
#include "job/parallel_json.h"
#include "save/checkpointing.h"
#include "save/options.h"

namespace shardplan {
namespace {

/// Buckets, thresholds and the like: what zero_optimization has beside stage and offload.
bool is_window(std::string_view key) {
  constexpr std::string_view kBlock = "zero_optimization.";
  return key.starts_with(kBlock) && key != "zero_optimization.stage" &&
         !key.substr(kBlock.size()).starts_with("offload_");
}

/// Calls `visit` with each window of ZeRO that differs, and its new value.
template <typename Visit>
void for_changed_windows(const ZeroOptions& before, const ZeroOptions& after, Visit visit) {
  DeepSpeedOptions from, to;
  from.zero = before;
  to.zero = after;
  for (const Option<DeepSpeedOptions>& option : kDsConfigTable.options) {
    if (!is_window(option.info.key)) continue;
    const OptionValue value = option.access.get(to);
    if (option.access.get(from) != value) visit(option.info, value);
  }
}

bool same_windows(const ZeroOptions& a, const ZeroOptions& b) {
  bool same = true;
  for_changed_windows(a, b, [&](const OptionInfo&, const OptionValue&) { same = false; });
  return same;
}

/// What a ds_config says of a job without one: docs/reference/job.md, "framework".
Json config_of_short_form(const Plan& plan) {
  Json config = Json::object();
  if (plan.precision.params == DType::bf16) config["bf16"] = Json{{"enabled", true}};
  if (plan.precision.params == DType::f16) config["fp16"] = Json{{"enabled", true}};
  if (plan.precision.autocast())
    config["torch_autocast"] =
        Json{{"enabled", true},
             {"dtype", plan.precision.compute == DType::bf16 ? "bfloat16" : "float16"}};
  return config;
}

void set_offload_block(Json& zero, const char* key, OffloadDevice before, OffloadDevice after) {
  if (before == after) return;
  if (after == OffloadDevice::none) {
    zero.erase(key);
    return;
  }
  zero[key]["device"] = name_of(after);
  if (after == OffloadDevice::nvme && !zero[key].contains("nvme_path"))
    zero[key]["nvme_path"] = "/local_nvme";
}

/// Brings zero_optimization of a ds_config from `before` to `after`.
void change_zero(Json& config, const ZeroOptions& before, const ZeroOptions& after) {
  Json& zero = config["zero_optimization"];
  if (zero.is_null()) zero = Json{{"stage", after.stage}};
  if (before.stage != after.stage) zero["stage"] = after.stage;
  for_changed_windows(before, after, [&](const OptionInfo& option, const OptionValue& value) {
    zero[std::string(option.key.substr(option.key.find('.') + 1))] = json_of(option, value);
  });
  // A null follows the stage, as a plan's does when its stage changes.
  if (before.stage != after.stage) zero.erase("overlap_comm");
  set_offload_block(zero, "offload_optimizer", before.offload_optimizer.device,
                    after.offload_optimizer.device);
  set_offload_block(zero, "offload_param", before.offload_param.device, after.offload_param.device);
}

/// The job's own batch keys speak for it: a ds_config that says otherwise would contradict them.
void drop_batch(Json& config) {
  for (const auto* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    config.erase(key);
}

class Rewriter {
 public:
  Rewriter(const Json& job, const std::string& directory, const Plan& before, const Plan& after)
      : job_(job), directory_(directory), before_(before), after_(after) {}

  Json run() {
    if (before_.framework.kind != after_.framework.kind) {
      replace_framework();
    } else if (traits_of(after_).has_zero) {
      change_deepspeed();
    } else {
      change_options();
    }
    change_workload();
    if (before_.parallel != after_.parallel) set_field(job_, "/parallel", changed_parallel());
    if (before_.checkpointing != after_.checkpointing ||
        before_.checkpoint_share != after_.checkpoint_share)
      set_field(job_, "/checkpointing", checkpointing_json(after_));
    if (before_.activation_offloading != after_.activation_offloading)
      set_field(job_, "/activation_offloading", std::string(name_of(after_.activation_offloading)));
    if (before_.mlp_tiles != after_.mlp_tiles) set_field(job_, "/mlp_tiles", after_.mlp_tiles);
    change_cluster();
    return std::move(job_);
  }

 private:
  /// Only DeepSpeed is moved to: questions/changes.h.
  void replace_framework() {
    job_["framework"] = Json{{"name", std::string(name_of(after_.framework.kind))}};
    const ZeroOptions& zero = after_.framework.deepspeed.zero;
    set_field(job_, "/framework/zero_stage", zero.stage);
    set_short_offload(ZeroOptions{}, zero);
    job_["precision"] = after_.precision.name;
    const ZeroOptions defaults = defaults_of(zero);
    if (!same_windows(defaults, zero)) change_config(defaults, zero);
  }

  /// The options of a short form with the same stage and offload.
  static ZeroOptions defaults_of(const ZeroOptions& zero) {
    ZeroOptions out;
    out.stage = zero.stage;
    out.offload_optimizer = zero.offload_optimizer;
    out.offload_param = zero.offload_param;
    return out;
  }

  void change_options() {
    for (const Option<Framework>& option : traits_of(after_).options.get()->options) {
      if (option.access.get == nullptr) continue;
      const OptionValue value = option.access.get(after_.framework);
      if (option.access.get(before_.framework) != value)
        set_field(job_, fmt::format("/framework/{}", option.info.key), json_of(option.info, value));
    }
  }

  void change_deepspeed() {
    const ZeroOptions& before = before_.framework.deepspeed.zero;
    const ZeroOptions& after = after_.framework.deepspeed.zero;
    const bool has_config = field_of(job_, "/framework/ds_config").has_value();
    if (has_config || !same_windows(before, after)) {
      const bool differs = before.stage != after.stage || !same_windows(before, after) ||
                           before.offload_optimizer.device != after.offload_optimizer.device ||
                           before.offload_param.device != after.offload_param.device;
      if (differs) change_config(before, after);
      return;
    }
    if (before.stage != after.stage) set_deepspeed_field("zero_stage", after.stage);
    set_short_offload(before, after);
  }

  void set_deepspeed_field(const char* key, const Json& value) {
    if (!field_of(job_, "/framework/name")) set_field(job_, "/framework/name", "deepspeed");
    set_field(job_, fmt::format("/framework/{}", key), value);
  }

  void set_short_offload(const ZeroOptions& before, const ZeroOptions& after) {
    const auto set = [&](const char* key, OffloadDevice from, OffloadDevice to) {
      if (from == to) return;
      if (to == OffloadDevice::none) {
        set_field(job_, fmt::format("/framework/{}", key), nullptr);
      } else {
        set_deepspeed_field(key, name_of(to));
      }
    };
    set("offload_optimizer", before.offload_optimizer.device, after.offload_optimizer.device);
    set("offload_param", before.offload_param.device, after.offload_param.device);
  }

  void change_config(const ZeroOptions& before, const ZeroOptions& after) {
    Json config = the_config();
    change_zero(config, before, after);
    set_field(job_, "/framework/name", "deepspeed");
    for (const auto* key : {"zero_stage", "offload_optimizer", "offload_param"})
      set_field(job_, fmt::format("/framework/{}", key), nullptr);
    set_field(job_, "/framework/ds_config", std::move(config));
  }

  /// The ds_config as it is now: the job's object, a copy of its file, or the short form's.
  Json the_config() const {
    const auto given = field_of(job_, "/framework/ds_config");
    if (given && given->is_object()) return *given;
    if (given && given->is_string())
      return read_json_file(
          (std::filesystem::path(directory_) / given->get<std::string>()).string());
    Json config = config_of_short_form(after_);
    Json& zero = config["zero_optimization"];
    const ZeroOptions& now = after_.framework.deepspeed.zero;
    zero["stage"] = now.stage;
    set_offload_block(zero, "offload_optimizer", OffloadDevice::none, now.offload_optimizer.device);
    set_offload_block(zero, "offload_param", OffloadDevice::none, now.offload_param.device);
    return config;
  }

  void change_workload() {
    const Workload& b = before_.workload;
    const Workload& a = after_.workload;
    if (b.micro_batch != a.micro_batch || b.gradient_accumulation != a.gradient_accumulation) {
      drop_config_batch();
      set_field(job_, "/workload/micro_batch", a.micro_batch);
      set_field(job_, "/workload/gradient_accumulation", a.gradient_accumulation);
    }
    if (b.sequence_length != a.sequence_length)
      set_field(job_, "/workload/sequence_length", a.sequence_length);
    if (b.target_length != a.target_length)
      set_field(job_, "/workload/target_length", a.target_length);
  }

  void drop_config_batch() {
    if (!field_of(job_, "/framework/ds_config")) return;
    Json config = the_config();
    const Json before = config;
    drop_batch(config);
    if (config != before) set_field(job_, "/framework/ds_config", std::move(config));
  }

  /// Without `data`, which follows from the rest and from the cluster.
  Json changed_parallel() const {
    return after_.parallel == Parallel{} ? Json() : parallel_json(after_);
  }

  void change_cluster() {
    const Cluster& b = before_.cluster;
    const Cluster& a = after_.cluster;
    if (b.gpus_per_node == a.gpus_per_node && b.nodes == a.nodes) return;
    const Json now = job_.value("cluster", Json());
    if (now.is_object() && now.contains("gpu")) {
      set_field(job_, "/cluster/gpus_per_node", a.gpus_per_node);
      set_field(job_, "/cluster/nodes", a.nodes);
    } else if (now.is_string() && !b.host_memory) {
      const std::string counts = a.nodes > 1 ? fmt::format("{}x{}x", a.nodes, a.gpus_per_node)
                                             : fmt::format("{}x", a.gpus_per_node);
      job_["cluster"] = counts + a.gpu.name;
    } else {  // an instance, or a name with more beside it
      job_["cluster"] = cluster_json(a, false);
    }
  }

  Json job_;
  const std::string& directory_;
  const Plan& before_;
  const Plan& after_;
};

}  // namespace

Json rewritten(const Json& job, const std::string& directory, const Plan& before,
               const Plan& after) {
  return Rewriter(job, directory, before, after).run();
}

}  // namespace shardplan
