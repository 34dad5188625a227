// Linears of one input that Megatron-LM keeps as one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardplan {

/// What Megatron Core joins a module with this last name into: "qkv" of q_proj, "gate_up" of
/// gate_proj (SelfAttention.linear_qkv, MLP.linear_fc1); nullopt: it is a linear of its own.
std::optional<std::string_view> joint_linear(std::string_view last_name);

/// A tensor's name with the joint linear in place of its part: "mlp.gate_up.weight" of
/// "mlp.up_proj.weight".
std::string joined_name(std::string_view tensor);

}  // namespace shardplan
