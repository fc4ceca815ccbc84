# What of cuda/card can be tested without a card, on a runtime and an NCCL of our own. Their headers are NVIDIA's, from
# wherever this machine has them.
if(NOT ENGRAM_CUDA_HEADERS OR NOT ENGRAM_NCCL_HEADERS)
  return()
endif()
add_library(engram_fake_nccl MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_nccl.cpp)
target_include_directories(engram_fake_nccl SYSTEM PRIVATE ${ENGRAM_CUDA_HEADERS} ${ENGRAM_NCCL_HEADERS})

file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
list(REMOVE_ITEM SOURCES ${CMAKE_CURRENT_LIST_DIR}/fake_nccl.cpp)
foreach(name captured_step nccl nccl_comm nccl_communicator stream waiting)
  list(APPEND SOURCES ${PROJECT_SOURCE_DIR}/cuda/card/${name}.cpp)
endforeach()
engram_test_program(card engram_core ${SOURCES})
target_include_directories(engram_tests_card SYSTEM PRIVATE ${ENGRAM_CUDA_HEADERS} ${ENGRAM_NCCL_HEADERS})
target_compile_definitions(engram_tests_card PRIVATE ENGRAM_FAKE_NCCL="$<TARGET_FILE:engram_fake_nccl>"
                                                     ENGRAM_CUDA_LIBRARIES="${ENGRAM_CUDA_HEADERS}")
target_link_libraries(engram_tests_card PRIVATE ${CMAKE_DL_LIBS})
# The library takes the runtime from the program.
set_target_properties(engram_tests_card PROPERTIES ENABLE_EXPORTS ON)
add_dependencies(engram_tests_card engram_fake_nccl)
