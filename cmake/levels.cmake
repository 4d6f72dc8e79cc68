# octet_level(<name> LEVEL <n> [DEPENDS <level>...] [LIBS <target>...] [HEADERS <header>...] [TEST_HEADERS <header>...])
#
# One static library octet::<name> from octet/<name>/**, and one test program octet_<name>_tests.
# The end of a file's name says how it is built; adding an op or a recipe is adding a folder, no list to edit:
#   *.cpp          the level's library
#   *.cpu.cpp      CPU kernels: compiled once per instruction set, see cmake/isa.cmake
#   *.cuda.cu      CUDA kernels, where the GPU backend is built, see cmake/cuda.cmake
#   *.sm90a.cu     the same with instructions that only Hopper has, such as wgmma
#   *.mpi.cpp      liboctet_mpi.so, where MPI is found, see cmake/mpi.cmake
#   *.bind.cpp     the Python module, see cmake/python.cmake
#   *.preload.cpp  liboctet_loopback.so, which `octet launch` loads into mpirun, see cmake/mpi.cmake
#   *.test.cpp     the level's test program
# Configuring fails when a level depends on its own level or above.
# HEADERS are precompiled for the level and for those above it, TEST_HEADERS for its test program: those that most of its files include.

# Parsing headers takes longer than compiling most of Octet's files: so these are precompiled, once per group of targets.
set(octet_common_headers <algorithm> <cmath> <cstdint> <cstring> <memory> <optional> <string> <string_view> <vector>)

# octet_precompile(<target> <group> <header>...): one precompiled header for all targets of a group, which are compiled alike. The first
# target of a group makes it.
function(octet_precompile target group)
  get_property(made GLOBAL PROPERTY octet_precompiled_${group})
  if(made)
    target_precompile_headers(${target} REUSE_FROM ${made})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY octet_precompiled_${group} ${target})
  endif()
endfunction()

# Sets `out` to the group of a level: those that see level 2, which adds OpenMP, or those below.
function(octet_compiled_alike level out)
  if(level LESS 2)
    set(${out} below PARENT_SCOPE)
  else()
    set(${out} above PARENT_SCOPE)
  endif()
endfunction()

function(octet_level name)
  cmake_parse_arguments(arg "" "LEVEL" "DEPENDS;LIBS;HEADERS;TEST_HEADERS" ${ARGN})
  set(target octet_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/octet/${name}/*.cpp)
  file(GLOB_RECURSE cuda CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/octet/${name}/*.cuda.cu)
  file(GLOB_RECURSE hopper CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/octet/${name}/*.sm90a.cu)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "\\.test\\.cpp$")
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cpu\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.(test|cpu|mpi|preload|bind)\\.cpp$|/main\\.cpp$")
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
      message(FATAL_ERROR "level '${name}' (level ${arg_LEVEL}) may not depend on '${below}' (level ${level})")
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
  if(arg_HEADERS)
    set_property(GLOBAL PROPERTY octet_headers ${arg_HEADERS})
  endif()
  if(sources)
    octet_compiled_alike(${arg_LEVEL} group)
    get_property(headers GLOBAL PROPERTY octet_headers)  # of this level or one below it
    if(headers)
      set(group with_headers)
    endif()
    octet_precompile(${target} ${group} ${octet_common_headers} ${headers})
  endif()
  if(kernels)
    octet_kernels(${target} ${kernels})
  endif()
  if(hopper AND OCTET_HAS_CUDA)
    octet_hopper_objects(${target} ${hopper})
  endif()
  if(tests AND OCTET_TESTS)
    octet_tests(octet_${name}_tests LIBS octet::${name} SOURCES ${tests} HEADERS ${arg_TEST_HEADERS})
  endif()
endfunction()

# octet_tests(<program> [SHARDS <n>] [COST <seconds>] LIBS <target>... SOURCES <file>... [HEADERS <header>...]): a GoogleTest program whose
# tests ctest sees one by one, or, where they share what takes long to make, as n processes that each run a share of them. Tests of high COST
# begin first, so that no long one runs alone at the end. HEADERS are precompiled for this program alone.
function(octet_tests program)
  cmake_parse_arguments(arg "" "SHARDS;COST" "LIBS;SOURCES;HEADERS" ${ARGN})
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  add_executable(${program} ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/tests/testing/cpu_only.cpp)
  target_link_libraries(${program} PRIVATE ${arg_LIBS} octet_testing GTest::gtest_main)
  list(GET arg_LIBS 0 first)
  string(REPLACE "octet::" "octet_" first ${first})
  get_target_property(level ${first} OCTET_LEVEL)
  octet_compiled_alike(${level} group)
  if(arg_HEADERS)
    set(group ${program})
  endif()
  octet_precompile(${program} tests_${group} <gtest/gtest.h> ${octet_common_headers} ${arg_HEADERS})
  target_compile_options(${program} PRIVATE -O0)  # tests: compile time counts more than speed
  target_compile_definitions(${program} PRIVATE OCTET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(arg_SHARDS)
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${program}.${shard} COMMAND ${program})
      set_tests_properties(${program}.${shard} PROPERTIES TIMEOUT 600 COST ${arg_COST} ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 COST ${arg_COST})
endfunction()
