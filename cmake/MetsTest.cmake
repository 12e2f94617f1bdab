# mets_add_test(NAME name LABELS label… SRCS file… [DEPS target…]
#               [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE…] [ARGS arg…])
#
# A GoogleTest program (label bench: a google-benchmark program) that ctest
# runs. Labels: unit, integration, e2e, fuzz, stress, bench, gpu, ops.
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

set(METS_TEST_LABELS unit integration e2e fuzz stress bench gpu ops)
set(METS_TEST_LAUNCHER "")
if(METS_SANITIZE STREQUAL "thread")
  # ThreadSanitizer does not stand the address randomisation of new kernels, and
  # does not see the mutexes of Abseil's library by itself.
  find_program(METS_SETARCH setarch REQUIRED)
  add_library(mets_tsan_mutex SHARED
              ${CMAKE_SOURCE_DIR}/tests/sanitizers/absl_mutex.cc)
  target_link_libraries(mets_tsan_mutex PRIVATE absl::synchronization
                                                ${CMAKE_DL_LIBS})
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libtsan.so
                  OUTPUT_VARIABLE METS_TSAN OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(METS_TEST_LAUNCHER
      ${METS_SETARCH} -R env
      LD_PRELOAD=${METS_TSAN}:$<TARGET_FILE:mets_tsan_mutex>)
endif()

# Settings that every test has, also those that are no GoogleTest program.
function(mets_set_test_properties name)
  cmake_parse_arguments(T "" "TIMEOUT" "LABELS;ENVIRONMENT" ${ARGN})
  foreach(label ${T_LABELS})
    if(NOT label IN_LIST METS_TEST_LABELS)
      message(FATAL_ERROR "test ${name}: unknown label '${label}'")
    endif()
  endforeach()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set(supp ${CMAKE_SOURCE_DIR}/tests/sanitizers)
  set_tests_properties(${name} PROPERTIES
    LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    COST ${T_TIMEOUT}  # Long ones begin first, and end beside short ones.
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${supp}/tsan.supp;${T_ENVIRONMENT}")
endfunction()

function(mets_add_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT"
                        "LABELS;SRCS;DEPS;ENVIRONMENT;ARGS" ${ARGN})
  add_executable(${T_NAME} ${T_SRCS})
  set_target_properties(${T_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)
  target_link_libraries(${T_NAME} PRIVATE ${T_DEPS})
  if("bench" IN_LIST T_LABELS)
    target_link_libraries(${T_NAME} PRIVATE benchmark::benchmark_main)
  else()
    target_link_libraries(${T_NAME} PRIVATE GTest::gmock GTest::gtest_main)
    # Tests' own code is hardly worth the time that -O3 takes.
    target_compile_options(${T_NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  add_test(NAME ${T_NAME}
           COMMAND ${METS_TEST_LAUNCHER} $<TARGET_FILE:${T_NAME}> ${T_ARGS})
  mets_set_test_properties(${T_NAME} TIMEOUT ${T_TIMEOUT}
    LABELS ${T_LABELS} ENVIRONMENT ${T_ENVIRONMENT})
endfunction()
