# Compiler settings that every target of the project shares, through shardplan_options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# Libraries are for the Python module, too, and made to be shared; hidden symbols keep calls direct.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(shardplan_options INTERFACE)
target_compile_options(shardplan_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op -Wno-missing-field-initializers>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers>
  $<$<BOOL:${SHARDPLAN_WERROR}>:-Werror>)
if(SHARDPLAN_QUICK_BUILD)
  # Format strings are checked by the other builds; and the compiler collects its garbage less often.
  target_compile_definitions(shardplan_options INTERFACE FMT_CONSTEVAL=)
  target_compile_options(shardplan_options INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576;--param=ggc-min-expand=200>)
endif()
if(SHARDPLAN_SANITIZE)
  target_compile_options(shardplan_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(shardplan_options INTERFACE -fsanitize=address,undefined)
endif()
if(SHARDPLAN_FUZZERS)
  target_compile_options(shardplan_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(shardplan_options INTERFACE -fsanitize=address,undefined)
endif()

# shardplan_front_end(TARGET): it reads, asks core and writes. Optimizing its templates further takes
# more time than they ever do.
function(shardplan_front_end target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
