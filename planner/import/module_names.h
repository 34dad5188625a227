// Names of modules as trainers' files say them to peft: lists, or an expression over whole names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan::importing {

/// The last parts of all names that an expression may match: q_proj, k_proj and o_proj of
/// "layers\.\d+\.(self_attn\.(q|k)_proj|attn.o_proj)". Empty where one of them is not written out.
std::vector<std::string> last_names(std::string_view expression);

}  // namespace shardplan::importing
