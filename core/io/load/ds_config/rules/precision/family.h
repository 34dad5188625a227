// fp16, bf16, amp, torch_autocast, data_types, 16-bit masters.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "formats/dtype.h"
#include "load/ds_config/subject.h"

namespace shardplan::config_rules::precision {

inline constexpr std::string_view kMasters =
    "deepspeed/runtime/config.py _do_error_check, base_optimizer.py _configure_master_weights";
inline constexpr std::string_view kSanity =
    "deepspeed/runtime/engine.py _do_optimizer_sanity_check";

inline constexpr const char* kFp16Masters = "fp16.fp16_master_weights_and_grads";
inline constexpr const char* kBf16Masters = "bf16.bf16_master_weights_and_grads";
inline constexpr const char* kBf16States = "bf16.bf16_optimizer_states";

/// The one type that the engine has (runtime/config.py _initialize_params).
DType engine_type(const DsValues& values);

/// The key that asks for 16-bit master weights where ZeRO is there to keep them, or nullptr.
const char* masters_key(const DsValues& values);

// The rules, one file each.
ConfigRule auto_cast_without_fp16();
ConfigRule fp16_and_bf16();
ConfigRule amp_with_zero();
ConfigRule amp_with_16bit();
ConfigRule loss_scale_range();
ConfigRule states_without_masters();
ConfigRule masters_of_both();
ConfigRule masters_without_zero();
ConfigRule masters_without_offload();
ConfigRule masters_without_cpu_adam();
ConfigRule param_dtype();
ConfigRule grad_accum_dtype();
ConfigRule grad_accum_dtype_ignored();
ConfigRule immediate_grad_update();
ConfigRule quantized_weights_autocast();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::precision
