#include "octet/tensor/cpu/threads.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace octet::cpu {

#ifdef _OPENMP
int threads() { return omp_get_max_threads(); }
int this_thread() { return omp_get_thread_num(); }
void set_threads(int n) { omp_set_num_threads(n); }
#else
int threads() { return 1; }
int this_thread() { return 0; }
void set_threads(int) {}
#endif

}  // namespace octet::cpu
