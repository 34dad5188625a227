// Which modules peft trains whole, by their names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

/// The length of the module's name that peft wraps, of a parameter `tensor` in it; nothing: it
/// wraps none. peft compares ends of names of all modules (0.21, utils/other.py, _set_trainable),
/// so that "mlp" takes all that is in one. `classifies`: the task is one of its classes for
/// sequences or tokens, which add heads (peft_model.py, classifier_module_names).
std::optional<std::size_t> saved_module(const std::vector<std::string>& saved, bool classifies,
                                        std::string_view tensor);

/// Whether a part of `name` between points is one of `parts`.
bool is_inside(const std::vector<std::string>& parts, std::string_view name);

}  // namespace shardplan
