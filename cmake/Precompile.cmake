# Third-party headers that nearly every source of a target includes, parsed once a target. Sources
# still name what they use: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without this file's help.

# What reads and writes JSON, parsed once for the libraries that do.
set(SHARDPLAN_JSON_HEADERS
  <algorithm> <fmt/format.h> <functional> <map> <nlohmann/json.hpp> <optional> <string> <vector>)

# shardplan_precompile(TARGET HEADERS...): for the target's C++ sources only; CUDA has no such thing.
function(shardplan_precompile target)
  set(headers "")
  foreach(header IN LISTS ARGN)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
