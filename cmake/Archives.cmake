# Third-party code that is linked in, so that what is built here needs no library of this machine.
# Sets the targets shardplan_fmt, shardplan_yaml and shardplan_toml.

# fmt's headers are those of its package; its compiled half is one source of ours.
add_library(shardplan_fmt STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/fmt_archive.cpp)
set_target_properties(shardplan_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(shardplan_fmt SYSTEM PUBLIC
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)

find_library(YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
add_library(shardplan_yaml STATIC IMPORTED GLOBAL)
set_target_properties(shardplan_yaml PROPERTIES
  IMPORTED_LOCATION ${YAML_CPP_ARCHIVE}
  INTERFACE_INCLUDE_DIRECTORIES $<TARGET_PROPERTY:yaml-cpp,INTERFACE_INCLUDE_DIRECTORIES>)

# Its headers are all of it unless its compiled half is asked for; one source of ours reads TOML.
add_library(shardplan_toml INTERFACE IMPORTED GLOBAL)
set_target_properties(shardplan_toml PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES
    "$<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>")
