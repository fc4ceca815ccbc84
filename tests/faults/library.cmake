# The library that makes calls of the system fail (tests/faults.sh). It is loaded before the program, never linked.
if(NOT ENGRAM_SANITIZE)
  add_library(engram_faults MODULE ${CMAKE_CURRENT_LIST_DIR}/fault_library.cpp ${CMAKE_CURRENT_LIST_DIR}/fault_plan.cpp)
  target_include_directories(engram_faults PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(engram_faults PRIVATE cxx_std_20)
  target_compile_options(engram_faults PRIVATE -O1 -Wall -Wextra $<$<BOOL:${ENGRAM_WERROR}>:-Werror>)
  target_link_libraries(engram_faults PRIVATE ${CMAKE_DL_LIBS})
endif()
