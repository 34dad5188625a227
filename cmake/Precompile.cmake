# Third-party headers that nearly every source of a target includes, parsed once a target. Sources
# still name what they use: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without this file's help.

# shardplan_precompile(TARGET HEADERS...): for the target's C++ sources only; CUDA has no such thing.
function(shardplan_precompile target)
  set(headers "")
  foreach(header IN LISTS ARGN)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
