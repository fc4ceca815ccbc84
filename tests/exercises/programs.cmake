# Exercises for learners (docs/guide/exercises.md). The check of each is linked with the learner's file, in the program
# `exercises`, and with the solution, in a test of every day. Only where ENGRAM_EXERCISES is ON does ctest have the
# exercises themselves, under the label `exercise`: they fail until they are solved.
option(ENGRAM_EXERCISES "ctest has the exercises, which fail until they are solved" OFF)
if(ENGRAM_SANITIZE)
  return()
endif()

file(GLOB EXERCISES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/[0-9]*.cpp)
file(GLOB SOLUTIONS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/solutions/*.cpp)
file(GLOB CHECKS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/checks/*.cpp)
list(FILTER CHECKS EXCLUDE REGEX "/race_program\\.cpp$")
if(NOT ENGRAM_SIMULATED)
  foreach(list EXERCISES SOLUTIONS CHECKS)
    list(FILTER ${list} EXCLUDE REGEX "/14_race\\.cpp$")
  endforeach()
endif()

# What every program of exercises is compiled and linked with. They compute little: compiling is what takes time. An
# index outside of a vector or span ends the program with a message.
add_library(engram_exercise_flags INTERFACE)
target_compile_options(engram_exercise_flags INTERFACE -O0 -g)
target_compile_definitions(engram_exercise_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_libraries(engram_exercise_flags INTERFACE engram_autograd)
if(ENGRAM_SIMULATED)
  target_link_libraries(engram_exercise_flags INTERFACE engram_simulated_kernels)
endif()

add_library(engram_exercise_checks OBJECT EXCLUDE_FROM_ALL ${CHECKS})
target_link_libraries(engram_exercise_checks PUBLIC engram_exercise_flags)
engram_join(engram_exercise_checks 20)

# engram_exercise_program(name source...): with all checks and a device to run them on.
function(engram_exercise_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE engram_exercise_checks engram_exercise_flags)
  if(ENGRAM_SIMULATED)
    target_link_libraries(${name} PRIVATE engram_simulated_engine)
  endif()
  engram_link_cpu(${name})
endfunction()

engram_exercise_program(engram_tests_solutions ${SOLUTIONS} ${CMAKE_CURRENT_LIST_DIR}/solutions_test.cpp)
target_link_libraries(engram_tests_solutions PRIVATE engram_tests_harness)
target_compile_definitions(engram_tests_solutions PRIVATE ENGRAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
engram_join(engram_tests_solutions 20)
add_test(NAME solutions COMMAND engram_tests_solutions ${SHOW_SLOW})
set_tests_properties(solutions PROPERTIES LABELS fast ENVIRONMENT OMP_WAIT_POLICY=passive)

# Each file of a learner is compiled alone, so that a mistake in one is named as such. A parameter that is not used yet
# is none.
engram_exercise_program(exercises ${EXERCISES} ${CMAKE_CURRENT_LIST_DIR}/program.cpp)
target_compile_options(exercises PRIVATE -Wno-unused-parameter -Wno-unused-function -Wno-error)
# Never a part of a whole build, which half an answer must not stop.
set_target_properties(exercises PROPERTIES EXCLUDE_FROM_ALL ON)

# The kernel of exercise 14 once more, watched by ThreadSanitizer, as the kernels of tests/simulated.
if(TARGET engram_simulated_engine_thread)
  add_executable(exercise_race EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/14_race.cpp
                                                ${CMAKE_CURRENT_LIST_DIR}/checks/race_program.cpp)
  target_link_libraries(exercise_race PRIVATE engram_core engram_simulated_kernels engram_simulated_engine_thread)
  target_compile_options(exercise_race PRIVATE -O1 -g -fsanitize=thread -fno-omit-frame-pointer -Wno-error)
  target_link_options(exercise_race PRIVATE -fsanitize=thread)
  add_dependencies(exercises exercise_race)
endif()

if(ENGRAM_EXERCISES)
  # Built by the test itself, so that nobody checks what he wrote before the last change.
  add_test(NAME exercises_built COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target exercises)
  set_tests_properties(exercises_built PROPERTIES LABELS exercise FIXTURES_SETUP exercises RUN_SERIAL ON)
  foreach(source ${EXERCISES})
    get_filename_component(name ${source} NAME_WE)
    string(SUBSTRING ${name} 0 2 number)
    string(REGEX REPLACE "^0" "" plain_number ${number})
    add_test(NAME exercise_${name} COMMAND exercises ${plain_number})
    set_tests_properties(exercise_${name} PROPERTIES LABELS exercise FIXTURES_REQUIRED exercises TIMEOUT 20)
  endforeach()
  if(TARGET exercise_race)
    add_test(NAME exercise_14_race_watched COMMAND ${FIXED_ADDRESSES} $<TARGET_FILE:exercise_race>)
    set_tests_properties(exercise_14_race_watched PROPERTIES LABELS exercise FIXTURES_REQUIRED exercises)
  endif()
endif()
