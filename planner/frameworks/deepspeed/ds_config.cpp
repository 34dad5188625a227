#include "frameworks/deepspeed/ds_config.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "load/ds_config/deprecated.h"
#include "optimizers/description.h"

namespace shardplan {
namespace {

class DsConfigWriter {
 public:
  DsConfigWriter(const Plan& plan, Json document)
      : plan_(plan),
        options_(plan.framework.deepspeed),
        zero_(options_.zero),
        json_(std::move(document)) {}

  Json write() {
    batch();
    types();
    zero();
    if (zero_.stage >= 1) optimizer_offload();
    if (zero_.stage == 3) parameter_offload();
    optimizer();
    rest();
    return std::move(json_);
  }

 private:
  static Json::json_pointer pointer(std::string path) {
    std::replace(path.begin(), path.end(), '.', '/');
    return Json::json_pointer("/" + path);
  }

  /// Sets the key; without `when` it is taken out, so that DeepSpeed's default holds.
  void set(const std::string& path, Json value, bool when = true) {
    const auto at = pointer(path);
    if (when) {
      json_[at] = std::move(value);
    } else if (json_.contains(at)) {
      json_.at(at.parent_pointer()).erase(at.back());
    }
  }

  void batch() {
    const Workload& w = plan_.workload;
    set("train_batch_size", checked_mul(plan_.samples_at_once(), w.gradient_accumulation));
    set("train_micro_batch_size_per_gpu", w.micro_batch);
    set("gradient_accumulation_steps", w.gradient_accumulation);
    set("gradient_clipping", plan_.gradient_clipping);
  }

  void types() {
    const Precision& p = plan_.precision;
    const bool bf16 = p.params == DType::bf16, fp16 = p.params == DType::f16;
    for (const char* block : {"bf16", "fp16", "torch_autocast"}) set(block, {}, false);
    set("bf16.enabled", bf16);
    set("bf16.check_grad_overflow", false, bf16 && !options_.check_grad_overflow);
    set("bf16.immediate_grad_update", true, bf16 && options_.immediate_grad_update);
    set("bf16.bf16_master_weights_and_grads", true, bf16 && options_.master_weights_16bit);
    set("bf16.bf16_optimizer_states", true, bf16 && options_.optimizer_states_16bit);
    set("fp16.enabled", true, fp16);
    if (fp16) loss_scaling();
    set("fp16.fp16_master_weights_and_grads", true, fp16 && options_.master_weights_16bit);
    set("torch_autocast.enabled", true, p.autocast());
    set("torch_autocast.dtype", p.compute == DType::bf16 ? "bfloat16" : "float16", p.autocast());
    set("data_types.grad_accum_dtype", dtype_name(options_.grad_accum_dtype),
        options_.grad_accum_dtype.has_value());
    set(options_.sequence_parallel > 1 ? "seq_parallel_communication_data_type"
                                       : "communication_data_type",
        dtype_name(options_.communication_dtype), options_.communication_dtype.has_value());
  }

  void loss_scaling() {
    const LossScaling& s = options_.loss_scaling;
    set("fp16.loss_scale", s.static_scale);
    set("fp16.initial_scale_power", s.initial_scale_power);
    set("fp16.loss_scale_window", s.window);
    set("fp16.hysteresis", s.hysteresis);
    set("fp16.min_loss_scale", s.min_scale);
  }

  static Json dtype_name(const std::optional<DType>& type) {
    return type ? Json(name_of(*type)) : Json(nullptr);
  }

  void zero() {
    const bool shards = zero_.stage >= 1, third = zero_.stage == 3;
    const bool flat = shards && !third;
    const auto key = [&](const char* name, const Json& value, bool when) {
      set(std::string("zero_optimization.") + name, value, when);
    };
    key("stage", zero_.stage, true);
    key("contiguous_gradients", zero_.contiguous_gradients, shards);
    key("overlap_comm", zero_.overlap_comm, shards);
    key("reduce_scatter", zero_.reduce_scatter, shards);
    key("reduce_bucket_size", zero_.reduce_bucket_size, shards);
    key("allgather_bucket_size", zero_.allgather_bucket_size, flat);
    key("round_robin_gradients", true, flat && zero_.round_robin_gradients);
    key("use_multi_rank_bucket_allreduce", false, flat && !zero_.use_multi_rank_bucket_allreduce);
    key("sub_group_size", zero_.sub_group_size, third);
    key("stage3_prefetch_bucket_size", zero_.prefetch_bucket_size, third);
    key("stage3_param_persistence_threshold", zero_.param_persistence_threshold, third);
    key("stage3_model_persistence_threshold", zero_.model_persistence_threshold,
        third && zero_.model_persistence_threshold != std::numeric_limits<std::int64_t>::max());
    key("stage3_max_live_parameters", zero_.max_live_parameters, third);
    key("stage3_max_reuse_distance", zero_.max_reuse_distance, third);
    key("stage3_gather_16bit_weights_on_model_save", zero_.gather_16bit_weights_on_model_save,
        third);
    key("stage3_allgather_sequential", true, third && zero_.allgather_sequential);
    key("stage3_use_all_reduce_for_fetch_params", true,
        third && zero_.use_all_reduce_for_fetch_params);
    key("stage3_module_granularity_threshold", zero_.module_granularity_threshold,
        third && zero_.module_granularity_threshold != 0);
    key("memory_efficient_linear", false, third && !zero_.memory_efficient_linear);
    key("zero_hpz_partition_size", zero_.hpz_partition_size, third && zero_.hpz_partition_size > 1);
    key("zero_quantized_weights", true, third && zero_.quantized_weights);
    key("zero_quantized_gradients", true, third && zero_.quantized_gradients);
    key("zero_quantized_nontrainable_weights", true, third && zero_.quantized_nontrainable_weights);
    key("zeropp_loco_param", Json{{"err_beta", 0.8}, {"reset_T", 1024}}, third && zero_.loco);
    key("mics_shard_size", zero_.mics_shard_size, zero_.mics());
    key("mics_hierarchical_params_gather", true, zero_.mics() && zero_.mics_hierarchical_gather);
    key("offload_optimizer", nullptr, false);
    key("offload_param", nullptr, false);
  }

  void optimizer_offload() {
    const OffloadOptimizer& o = zero_.offload_optimizer;
    if (o.device == OffloadDevice::none) return;
    const bool nvme = o.device == OffloadDevice::nvme;
    Json block{{"device", name_of(o.device)}, {"pin_memory", o.pin_memory}};
    if (nvme) {
      block["nvme_path"] = o.nvme_path;
      block["buffer_count"] = o.buffer_count;
      block["pipeline_read"] = o.pipeline_read;
      block["pipeline_write"] = o.pipeline_write;
      block["fast_init"] = o.fast_init;
    }
    if (o.ratio < 1) block["ratio"] = o.ratio;
    if (o.super_offload) block["super_offload"] = true;
    set("zero_optimization.offload_optimizer", std::move(block));
  }

  void parameter_offload() {
    const OffloadParam& o = zero_.offload_param;
    if (o.device == OffloadDevice::none) return;
    Json block{{"device", name_of(o.device)}, {"pin_memory", o.pin_memory}};
    if (o.device == OffloadDevice::nvme) {
      block["nvme_path"] = o.nvme_path;
      block["buffer_count"] = o.buffer_count;
      block["buffer_size"] = o.buffer_size;
      block["max_in_cpu"] = o.max_in_cpu;
    }
    set("zero_optimization.offload_param", std::move(block));
  }

  /// With offload DeepSpeed wants to build its own CPU optimizer (engine.py, ZeRO-Offload with a
  /// client optimizer).
  void optimizer() {
    if (json_.contains("optimizer")) return;
    if (options_.optimizer_type) {
      set("optimizer.type", *options_.optimizer_type);
    } else if (zero_.stage >= 1 && zero_.offload_optimizer.device != OffloadDevice::none) {
      const std::optional<std::string> type = cpu_optimizer();
      if (type) set("optimizer.type", *type);
    } else if (zero_.stage == 0 && !options_.program_makes_optimizer()) {
      // Stage 0 wraps FusedAdam in another way than a program's own optimizer.
      const DeepSpeedNames& names = plan_.optimizer.kind->deepspeed;
      if (names.fused) set("optimizer.type", std::string(names.types.front()));
    }
  }

  std::optional<std::string> cpu_optimizer() const {
    const DeepSpeedNames& names = plan_.optimizer.kind->deepspeed;
    if (!names.on_cpu) return std::nullopt;
    return std::string(names.types.front());
  }

  void rest() {
    const bool nvme = zero_.stage == 3 && (zero_.offload_optimizer.device == OffloadDevice::nvme ||
                                           zero_.offload_param.device == OffloadDevice::nvme);
    const DeepSpeedAio& a = options_.aio;
    set("aio",
        Json{{"block_size", a.block_size},
             {"queue_depth", a.queue_depth},
             {"intra_op_parallelism", a.intra_op_parallelism},
             {"single_submit", a.single_submit},
             {"overlap_events", a.overlap_events},
             {"use_gds", a.use_gds}},
        nvme);
    set("tensor_parallel.autotp_size", options_.tensor_parallel, options_.tensor_parallel > 1);
    set("sequence_parallel_size", options_.sequence_parallel, options_.sequence_parallel > 1);
  }

  const Plan& plan_;
  const DeepSpeedOptions& options_;
  const ZeroOptions& zero_;
  Json json_;
};

/// Values in place of "auto", and nothing in place of those that are dropped.
void resolve(Json& document, const std::vector<ResolvedAuto>& autos) {
  for (const ResolvedAuto& a : autos) {
    std::string path = "/" + a.path;
    std::replace(path.begin(), path.end(), '.', '/');
    const Json::json_pointer at(path);
    if (!document.contains(at)) continue;
    if (a.value.is_null()) {
      document.at(at.parent_pointer()).erase(at.back());
    } else {
      document[at] = a.value;
    }
  }
}

}  // namespace

Json ds_config_of(const Plan& plan, const Json& own, const std::vector<ResolvedAuto>& autos) {
  if (plan.framework.kind != FrameworkKind::deepspeed)
    throw InputError({.key = "framework.name",
                      .message = "a ds_config is for DeepSpeed, and the job runs under " +
                                 std::string(name_of(plan.framework.kind)),
                      .expected = "deepspeed"});
  Json document = own.is_object() ? own : Json::object();
  DsFindings findings("");  // the file was checked when the job was read
  move_deprecated(document, findings);
  resolve(document, autos);
  return DsConfigWriter(plan, std::move(document)).write();
}

}  // namespace shardplan
