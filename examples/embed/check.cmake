# Installs Octet from a build folder, builds the example beside this file against it, and runs that:
#   cmake -D BUILD=<build folder> -D WORK=<folder to work in> [-D GENERATOR=<generator>] [-D COMPILER=<C++ compiler>] -P check.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    string(JOIN " " line ${ARGV})
    message(FATAL_ERROR "${line}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/embed)
message(STATUS "${output}")
run(${WORK}/prefix/bin/octet --help)
file(REMOVE_RECURSE ${WORK})
