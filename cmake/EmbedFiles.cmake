# shardplan_embed(TARGET FILES...): compiles data files into TARGET, so that a program needs no
# data folder. embedded/files.h reads them back by their path below data/.
function(shardplan_embed target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cpp)
  set(bytes ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.bin)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/data/ OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${source} ${bytes}
    COMMAND shardplan_pack ${source} ${bytes} ${PROJECT_SOURCE_DIR}/data ${ARGN}
    DEPENDS shardplan_pack ${paths}
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS ${bytes} SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
