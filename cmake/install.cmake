# cmake --install: the program (component `program`), and the levels below it as a package for find_package(octet): static libraries, public
# headers, their targets (component `development`).
include(CMakePackageConfigHelpers)
set(octet_package ${CMAKE_INSTALL_LIBDIR}/cmake/octet)

install(TARGETS octet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES LICENSE TYPE DOC COMPONENT program)

# octet_public_headers(<variable> <pattern>...): headers of kernels and of backends are internal. Those of them that public headers include
# are installed, too.
function(octet_public_headers out)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} ${ARGN})
  list(FILTER headers EXCLUDE REGEX "[.](test|testing|reference|kernels|math)[.]hpp$|/(cpu|cuda|mpi|nccl|peer|rendezvous|tensorboard)/")
  set(found ${headers})
  while(headers)
    list(POP_FRONT headers header)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"octet/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" path "${line}")
      if(NOT path IN_LIST found)
        list(APPEND found ${path})
        list(APPEND headers ${path})
      endif()
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(exported octet_openmp octet_cuda)
foreach(level IN ITEMS base numerics config json tokenizer tensor ops comm data io telemetry health machine scaling nn optim parallel models train)
  list(APPEND exported octet_${level})
  list(APPEND patterns ${PROJECT_SOURCE_DIR}/octet/${level}/*.hpp)
endforeach()
octet_public_headers(headers ${patterns})
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()
foreach(target IN LISTS exported)
  string(REPLACE "octet_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endforeach()
# What is inline in headers must be compiled as the libraries were, so that one formula has the same bits in both.
target_compile_options(octet_numerics INTERFACE $<INSTALL_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>>)

install(TARGETS ${exported} EXPORT octetTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT octetTargets NAMESPACE octet:: DESTINATION ${octet_package} COMPONENT development)
configure_package_config_file(cmake/octetConfig.cmake.in ${PROJECT_BINARY_DIR}/octetConfig.cmake INSTALL_DESTINATION ${octet_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/octetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/octetConfig.cmake ${PROJECT_BINARY_DIR}/octetConfigVersion.cmake DESTINATION ${octet_package}
        COMPONENT development)
