# The tests of the simulated device itself: with both ways to switch threads, and in programs built with a sanitizer.
file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
# Its kernels tell what they cost, optimised as those of the device are. What is known by hand is what GCC tells: Clang
# leaves out a load before a store of the same number.
if(ENGRAM_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(FILTER SOURCES EXCLUDE REGEX "/(sampled_)?cost_test\\.cpp$")
endif()
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cost_test.cpp ${CMAKE_CURRENT_LIST_DIR}/sampled_cost_test.cpp
  PROPERTIES COMPILE_OPTIONS "${ENGRAM_COST_OPTIONS};-O2" SKIP_PRECOMPILE_HEADERS ON)
set(SIMULATED_ENGINES simulated engram_simulated_engine)
if(NOT ENGRAM_SIMULATED_USED_SWITCH STREQUAL "UCONTEXT" AND NOT ENGRAM_SANITIZE)
  # AddressSanitizer knows swapcontext only in part.
  engram_simulated_engine_library(engram_simulated_engine_ucontext UCONTEXT "")
  list(APPEND SIMULATED_ENGINES simulated_ucontext engram_simulated_engine_ucontext)
endif()
while(SIMULATED_ENGINES)
  list(POP_FRONT SIMULATED_ENGINES name engine)
  engram_test_program(${name} engram_core ${SOURCES})
  target_link_libraries(engram_tests_${name} PRIVATE engram_simulated_kernels ${engine})
  set_tests_properties(${name} PROPERTIES LABELS "fast;simulated")
endwhile()

# Mistakes that a sanitizer sees, in the words of GCC's; Clang's needs a symboliser, and knows its OpenMP only in part.
# A build with a sanitizer of its own leaves them to the plain one.
if(ENGRAM_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  return()
endif()

# GCC 12's ThreadSanitizer gives up when the kernel randomises addresses by more bits than it expects.
find_program(SETARCH setarch)
set(FIXED_ADDRESSES "")
if(SETARCH)
  execute_process(COMMAND ${SETARCH} -R ${CMAKE_COMMAND} -E true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(refused EQUAL 0)
    set(FIXED_ADDRESSES ${SETARCH} -R)
  endif()
endif()

# sanitized_kernel(sanitizer name report): the kernel must give the report (a regular expression).
function(sanitized_kernel sanitizer name report)
  set(test simulated_${sanitizer}_${name})
  add_test(NAME ${test} COMMAND ${FIXED_ADDRESSES} $<TARGET_FILE:engram_simulated_${sanitizer}> ${name})
  set_tests_properties(${test} PROPERTIES LABELS simulated ENVIRONMENT "${SANITIZER_OPTIONS}"
                                             PASS_REGULAR_EXPRESSION "${report}")
endfunction()
# The kernels must run, and the sanitizer say nothing.
function(sanitized_kernel_clean sanitizer name)
  set(test simulated_${sanitizer}_${name})
  add_test(NAME ${test} COMMAND ${FIXED_ADDRESSES} $<TARGET_FILE:engram_simulated_${sanitizer}> ${name})
  set_tests_properties(${test} PROPERTIES LABELS simulated ENVIRONMENT "${SANITIZER_OPTIONS}"
                                             FAIL_REGULAR_EXPRESSION "Sanitizer|runtime error")
endfunction()

# Locals on a stack of the sanitizer's own, as in the whole project's tests under it.
set(SANITIZER_OPTIONS ASAN_OPTIONS=detect_stack_use_after_return=1)
foreach(sanitizer thread address alignment)
  if(sanitizer STREQUAL "alignment")
    set(engine engram_simulated_engine)  # it has nothing to tell that sanitizer
  else()
    set(engine engram_simulated_engine_${sanitizer})
    engram_simulated_engine_library(${engine} ${ENGRAM_SIMULATED_USED_SWITCH} ${sanitizer})
  endif()
  set(program engram_simulated_${sanitizer})
  add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/sanitized_program.cpp)
  target_link_libraries(${program} PRIVATE engram_simulated_kernels ${engine})
  target_compile_options(${program} PRIVATE -O1 -g -fsanitize=${sanitizer} -fno-sanitize-recover=all
                                            -fno-omit-frame-pointer)
  target_link_options(${program} PRIVATE -fsanitize=${sanitizer})
  sanitized_kernel_clean(${sanitizer} correct)
  sanitized_kernel_clean(${sanitizer} mistake)
endforeach()

set(HERE "tests/simulated/broken_kernels.hpp")
sanitized_kernel(thread missing_barrier "ThreadSanitizer: data race.*missing_barrier.*${HERE}")
sanitized_kernel(thread write_after_read "ThreadSanitizer: data race.*write_after_read.*${HERE}")
sanitized_kernel(thread shuffle_as_barrier "ThreadSanitizer: data race.*shuffle_as_barrier.*${HERE}")
sanitized_kernel(thread blocks_write_one_address "ThreadSanitizer: data race.*blocks_write_one_address.*${HERE}")
sanitized_kernel(thread copy_without_barrier "ThreadSanitizer: data race.*broken_copy.*${HERE}")
sanitized_kernel(thread copy_into_what_is_read "ThreadSanitizer: data race.*broken_copy.*${HERE}")
sanitized_kernel(address copy_read_early "AddressSanitizer: use-after-poison.*READ of size 4.*broken_copy.*${HERE}")
sanitized_kernel(address shared_overrun "AddressSanitizer: use-after-poison.*WRITE of size 4.*shared_overrun.*${HERE}")
sanitized_kernel(address global_overrun "AddressSanitizer: heap-buffer-overflow.*WRITE of size 4.*global_overrun.*${HERE}")
sanitized_kernel(alignment misaligned_vector "runtime error: .*misaligned address.*requires 16 byte alignment")
