# shardplan_embed(TARGET FILES...): compiles data files into TARGET, so that a program needs no
# data folder. embedded/files.h reads them back by their path below data/.
function(shardplan_embed target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cpp)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/data/ OUTPUT_VARIABLE paths)
  list(JOIN ARGN "," names)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DROOT=${PROJECT_SOURCE_DIR}/data
            -DFILES=${names} -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
