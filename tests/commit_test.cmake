# Which commit a build names: git's, else that of a source archive, else what it is told.
# cmake -DSOURCE=sources -DWORK=a folder to write in -P commit_test.cmake
file(REMOVE_RECURSE ${WORK})
set(ENV{GIT_CEILING_DIRECTORIES} ${WORK})  # git does not find the repository that WORK may lie in
set(PROJECT_SOURCE_DIR ${WORK}/sources)
file(READ ${SOURCE}/cmake/Commit.cmake text)
# As in a working tree, also where SOURCE is an archive.
string(REGEX REPLACE "archived \"[^\"]*\"" "archived \"$Format:%h$\"" text "${text}")
file(WRITE ${PROJECT_SOURCE_DIR}/cmake/Commit.cmake "${text}")
configure_file(${SOURCE}/.gitattributes ${PROJECT_SOURCE_DIR}/.gitattributes COPYONLY)

function(git)
  execute_process(COMMAND git -c user.name=a -c user.email=a@b -c commit.gpgsign=false ${ARGN}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(said "${said}" PARENT_SCOPE)
endfunction()

# `folder`: sources to build; expects the commit that they are said to be of.
function(expect folder expected)
  set(PROJECT_SOURCE_DIR ${folder})
  include(${folder}/cmake/Commit.cmake)
  shardplan_commit(commit)
  if(NOT commit STREQUAL expected)
    message(FATAL_ERROR "${folder}: the commit is '${commit}', expected '${expected}'")
  endif()
endfunction()

set(SHARDPLAN_COMMIT "stated" CACHE STRING "" FORCE)
expect(${WORK}/sources "stated")
git(init -q)
git(add -A)
git(commit -q -m first)
git(rev-parse --short HEAD)
set(first "${said}")
expect(${WORK}/sources "${first}")
git(archive --format=tar --output=${WORK}/archive.tar --prefix=archive/ HEAD)
file(ARCHIVE_EXTRACT INPUT ${WORK}/archive.tar DESTINATION ${WORK})
expect(${WORK}/archive "${first}")
