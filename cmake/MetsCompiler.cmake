# Compiler launcher, sanitizers, warnings.

find_program(METS_CCACHE ccache)
if(METS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${METS_CCACHE})
endif()

if(METS_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(METS_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(METS_SANITIZE)
  message(FATAL_ERROR
          "METS_SANITIZE=${METS_SANITIZE}: known are 'address' and 'thread'")
endif()

# Warnings are errors in every target made after this call.
macro(mets_enable_warnings)
  add_compile_options(-Wall -Wextra -Werror)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-Wthread-safety)
  endif()
  if(METS_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # "Fence is not supported", and variants' strings seem not to be set.
    add_compile_options(-Wno-tsan -Wno-maybe-uninitialized)
  endif()
endmacro()
