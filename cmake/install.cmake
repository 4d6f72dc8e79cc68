# cmake --install: the program, and the levels below it as a package for find_package(octet): static libraries, headers, their targets.
include(CMakePackageConfigHelpers)
set(octet_package ${CMAKE_INSTALL_LIBDIR}/cmake/octet)

install(TARGETS octet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES LICENSE TYPE DOC)

set(exported octet_openmp octet_cuda)
foreach(level IN ITEMS base numerics config json tokenizer tensor ops comm data io telemetry health machine scaling nn optim parallel models train)
  list(APPEND exported octet_${level})
  install(DIRECTORY octet/${level} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/octet FILES_MATCHING PATTERN "*.hpp"
          PATTERN "*.test.hpp" EXCLUDE PATTERN "*.testing.hpp" EXCLUDE PATTERN "*.reference.hpp" EXCLUDE)
endforeach()
foreach(target IN LISTS exported)
  string(REPLACE "octet_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endforeach()
# What is inline in headers must be compiled as the libraries were, so that one formula has the same bits in both.
target_compile_options(octet_numerics INTERFACE $<INSTALL_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>>)

install(TARGETS ${exported} EXPORT octetTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT octetTargets NAMESPACE octet:: DESTINATION ${octet_package})
configure_package_config_file(cmake/octetConfig.cmake.in ${PROJECT_BINARY_DIR}/octetConfig.cmake INSTALL_DESTINATION ${octet_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/octetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/octetConfig.cmake ${PROJECT_BINARY_DIR}/octetConfigVersion.cmake DESTINATION ${octet_package})
