# The libraries of one build folder for another to link: a wheel needs only its module then.

# shardplan_export_libraries(): writes this build folder's.
function(shardplan_export_libraries)
  export(TARGETS shardplan_cli shardplan_planner shardplan_io shardplan_core shardplan_fmt
                 shardplan_options
         NAMESPACE built:: FILE ${PROJECT_BINARY_DIR}/built_libraries.cmake)
endfunction()

# shardplan_import_libraries(FOLDER): what the program and the module link, from that build folder.
macro(shardplan_import_libraries folder)
  include(${folder}/built_libraries.cmake)
  add_library(shardplan_cli ALIAS built::shardplan_cli)
endmacro()
