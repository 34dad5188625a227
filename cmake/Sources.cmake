# Sources are found by folder, so that a new file is one new file.

# shardplan_sources(VARIABLE FOLDER [EXCEPT PATHS...]): the .cpp files below FOLDER of the current
# source directory, without those below PATHS (folders or files).
function(shardplan_sources variable folder)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  cmake_path(ABSOLUTE_PATH folder NORMALIZE OUTPUT_VARIABLE root)
  cmake_path(APPEND root "*.cpp" OUTPUT_VARIABLE pattern)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${pattern})
  foreach(path IN LISTS ARG_EXCEPT)
    string(REGEX REPLACE "([][+.*()^?$|\\])" "\\\\\\1" pattern ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    list(FILTER found EXCLUDE REGEX "^${pattern}(/|$)")
  endforeach()
  list(SORT found)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# shardplan_unity(TARGET): its sources are compiled several at a time (SHARDPLAN_UNITY), because
# their headers, and the templates that all of them use, take longer than they do: three units of
# 30 sources of the planner took a compiler 84 s, one of 90 took 69 s (and 1.2 GB). One source that
# changed takes longer.
function(shardplan_unity target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${SHARDPLAN_UNITY} UNITY_BUILD_BATCH_SIZE ${SHARDPLAN_UNITY_BATCH})
endfunction()

# shardplan_library(TARGET [FOLDER folder] [EXCEPT PATHS...]): a static library of all sources below
# this folder, or below one in it.
function(shardplan_library target)
  cmake_parse_arguments(ARG "" "FOLDER" "EXCEPT" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER .)
  endif()
  shardplan_sources(sources ${ARG_FOLDER} EXCEPT ${ARG_EXCEPT})
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  shardplan_unity(${target})
endfunction()
