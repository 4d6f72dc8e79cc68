# One binary for AVX2 and AVX-512: every *.cpu.cpp is compiled once per instruction set, its code in a namespace of that name
# (OCTET_ISA), and octet/tensor/cpu/isa.hpp calls the one this machine runs. Contraction is off: a fused multiply-add is written
# as fma() where it is wanted, so that one formula gives the same bits on every backend. A prefetch for writing (prfchw) does nothing on
# the few processors with AVX2 that do not know it.
set(OCTET_ISA_v3 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mprfchw -mtune=haswell)
set(OCTET_ISA_v4 ${OCTET_ISA_v3} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mprefer-vector-width=512 -mtune=icelake-server)

function(octet_kernels target)
  foreach(isa v3 v4)
    set(objects ${target}_${isa})
    add_library(${objects} OBJECT ${ARGN})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_features(${objects} PRIVATE cxx_std_20)
    target_compile_options(${objects} PRIVATE ${OCTET_ISA_${isa}} $<$<CONFIG:Release>:-O3> -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi -Wno-maybe-uninitialized -Wno-uninitialized)
    target_compile_definitions(${objects} PRIVATE OCTET_ISA=${isa} OCTET_ISA_${isa}=1)
    target_link_libraries(${objects} PRIVATE $<$<BOOL:${OCTET_OPENMP}>:OpenMP::OpenMP_CXX>)
    target_precompile_headers(${objects} PRIVATE <immintrin.h> <cstdint> <cstring> <memory> <string> <string_view> <vector>)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY OCTET_V4_KERNELS ${target}_v4)  # tests/house/isa.test.cpp looks at them
endfunction()
