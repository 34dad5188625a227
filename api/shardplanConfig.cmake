# find_package(shardplan): the target shardplan::shardplan. It needs no other package.
include(${CMAKE_CURRENT_LIST_DIR}/shardplanTargets.cmake)
