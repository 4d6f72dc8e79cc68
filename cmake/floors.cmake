# octet_floor(<name> LEVEL <n> [DEPENDS <floor>...] [LIBS <target>...])
#
# One static library octet::<name> from octet/<name>/**, and one test program octet_<name>_tests.
# The end of a file's name says how it is built; adding an op or a recipe is adding a folder, no list to edit:
#   *.cpp          the floor's library
#   *.cpu.cpp      CPU kernels: compiled once per instruction set, see cmake/isa.cmake
#   *.cuda.cu      CUDA kernels, where the GPU backend is built, see cmake/cuda.cmake
#   *.test.cpp     the floor's test program
# Configuring fails when a floor depends on its own level or above.
# Parsing these takes longer than compiling most of Octet's files: done once a target.
set(octet_common_headers <algorithm> <cmath> <cstdint> <cstring> <memory> <optional> <string> <string_view> <vector>)

function(octet_floor name)
  cmake_parse_arguments(arg "" "LEVEL" "DEPENDS;LIBS" ${ARGN})
  set(target octet_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/octet/${name}/*.cpp)
  file(GLOB_RECURSE cuda CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/octet/${name}/*.cuda.cu)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "\\.test\\.cpp$")
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cpu\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.(test|cpu)\\.cpp$|/main\\.cpp$")
  if(OCTET_HAS_CUDA)
    list(APPEND sources ${cuda})
  endif()
  if(sources OR kernels)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(octet::${name} ALIAS ${target})
  set_property(TARGET ${target} PROPERTY OCTET_LEVEL ${arg_LEVEL})
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} ${scope} cxx_std_20)
  foreach(below IN LISTS arg_DEPENDS)
    get_target_property(level octet_${below} OCTET_LEVEL)
    if(NOT level LESS arg_LEVEL)
      message(FATAL_ERROR "floor '${name}' (level ${arg_LEVEL}) may not depend on '${below}' (level ${level})")
    endif()
    target_link_libraries(${target} ${scope} octet::${below})
  endforeach()
  foreach(library IN LISTS arg_LIBS)
    get_target_property(headers_only ${library} OCTET_HEADERS_ONLY)  # Octet's own headers include none of theirs
    if(headers_only)
      set(library $<BUILD_INTERFACE:${library}>)
    endif()
    target_link_libraries(${target} ${scope} ${library})
  endforeach()
  if(sources)
    target_precompile_headers(${target} PRIVATE ${octet_common_headers})
  endif()
  if(kernels)
    octet_kernels(${target} ${kernels})
  endif()
  if(tests AND OCTET_TESTS)
    octet_tests(octet_${name}_tests LIBS octet::${name} SOURCES ${tests})
  endif()
endfunction()

# octet_tests(<program> LIBS <target>... SOURCES <file>...): a GoogleTest program whose tests ctest sees one by one.
function(octet_tests program)
  cmake_parse_arguments(arg "" "" "LIBS;SOURCES" ${ARGN})
  add_executable(${program} ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LIBS} octet_testing GTest::gtest_main)
  target_precompile_headers(${program} PRIVATE <gtest/gtest.h> ${octet_common_headers})
  target_compile_options(${program} PRIVATE -O1)  # tests: compile time counts more than speed
  target_compile_definitions(${program} PRIVATE OCTET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
