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

# A model to fine-tune: a small one, trained for two steps on this folder.
set(octet ${WORK}/prefix/bin/octet)
set(small --set model.layers=1 --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=96)
run(${octet} tokenize --input "${CMAKE_CURRENT_LIST_DIR}/*" --output ${WORK}/data)
run(${octet} train --data ${WORK}/data --steps 2 --output ${WORK}/runs --name base ${small} --set data.sequence_length=128
    --set data.eval_fraction=0 --set train.batch=2 --set device=cpu)
execute_process(COMMAND ${WORK}/build/fine_tune ${WORK}/runs/base/weights ${WORK}/data WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed OR NOT output MATCHES "runs/tuned/weights: loss [0-9.]+")
  message(FATAL_ERROR "fine_tune: ${output}")
endif()
file(REMOVE_RECURSE ${WORK})
