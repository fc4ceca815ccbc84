# find_package(engram) gives the target engram::engram. It needs no other package.
include(${CMAKE_CURRENT_LIST_DIR}/engramTargets.cmake)
