# Warnings, sanitizers and ccache: what every target is built with.
add_library(commlens_options INTERFACE)
target_compile_options(commlens_options INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # False alarms of g++ 12 and 13 inside std::string, std::vector and std::variant at -O2.
  target_compile_options(commlens_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overread)
endif()
if(COMMLENS_WERROR)
  target_compile_options(commlens_options INTERFACE -Werror)
endif()
if(COMMLENS_SANITIZE)
  # What is left out makes code a third longer, and shows as a fault of the address sanitizer all the same.
  add_compile_options(-fsanitize=${COMMLENS_SANITIZE} -fno-sanitize=null,alignment,vptr,object-size
                      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COMMLENS_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
else()
  message(STATUS "ccache not found: rebuilding takes longer")
endif()
