# The commit that records of runs name: git's, else that of a source archive (git writes it here
# while it makes one), else what -DSHARDPLAN_COMMIT says. It is that of the last configuration.
set(SHARDPLAN_COMMIT "" CACHE STRING "The sources' commit, where neither git nor an archive says it")

function(shardplan_commit result)
  set(archived "$Format:%h$")
  execute_process(COMMAND git rev-parse --short HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT commit AND NOT archived MATCHES "Format:")
    set(commit "${archived}")
  endif()
  if(NOT commit)
    set(commit "${SHARDPLAN_COMMIT}")
  endif()
  if(NOT commit)
    message(WARNING "No commit is known: records of this build will name none. "
      "Say it with -DSHARDPLAN_COMMIT=...")
  endif()
  set(${result} "${commit}" PARENT_SCOPE)
endfunction()
