# docs/guide/debugging.md, typed into gdb. Every day on a program of few sources, the only ones that are built with -g; in
# a build of the preset teach on the tour itself, all of the page. Skipped where there is no gdb.
if(NOT PYTHON3 OR ENGRAM_SANITIZE OR NOT ENGRAM_SIMULATED)
  return()
endif()
set(sources tests/gdb/softmax_program.cpp cuda/softmax.cu)
foreach(name op_example softmax_example op_trace trace_text)
  list(APPEND sources apps/tour/trace/${name}.cpp)
endforeach()
foreach(name tape backward gradcheck drawn_values initializer parameter parameter_store rank_exchange row_gradient
             functions/softmax)
  list(APPEND sources autograd/${name}.cpp)
endforeach()
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
set_source_files_properties(${PROJECT_SOURCE_DIR}/cuda/softmax.cu PROPERTIES LANGUAGE CXX)
set(engine engram_simulated_engine)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Clang describes a variable of another source only there.
  set(engine engram_simulated_engine_gdb)
  engram_simulated_engine_library(${engine} ${ENGRAM_SIMULATED_USED_SWITCH} "")
  target_compile_options(${engine} PRIVATE -Og -g)
endif()
add_executable(engram_tests_gdb ${sources})
target_link_libraries(engram_tests_gdb PRIVATE engram_core engram_simulated_kernels ${engine})
# Types that the sources include and gdb alone uses are described as well.
target_compile_options(engram_tests_gdb PRIVATE -Og -g -fno-eliminate-unused-debug-types)
engram_link_cpu(engram_tests_gdb)
engram_join(engram_tests_gdb 7)

set(CHECK_PAGE ${PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/check.py ${PROJECT_SOURCE_DIR}/docs/guide/debugging.md)
add_test(NAME debugging_page COMMAND ${CHECK_PAGE} --softmax $<TARGET_FILE:engram_tests_gdb>)
set_tests_properties(debugging_page PROPERTIES LABELS fast SKIP_RETURN_CODE 77 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_test(NAME debugging_page_whole COMMAND ${CHECK_PAGE} --tour $<TARGET_FILE:autograd_tour>)
  set_tests_properties(debugging_page_whole PROPERTIES LABELS "nightly;teach" SKIP_RETURN_CODE 77
                                                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()
