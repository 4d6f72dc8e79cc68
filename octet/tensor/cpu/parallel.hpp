#pragma once

// Only for *.cpu.cpp files: loops over OpenMP threads. Work is divided only by count, so results do not depend on timing.

#include <cstdint>

#include "octet/base/hd.hpp"
#include "octet/tensor/cpu/threads.hpp"

#ifndef OCTET_ISA
#error "parallel.hpp is for kernels (*.cpu.cpp), which are compiled once per instruction set"
#endif

namespace octet::cpu::OCTET_ISA {

/// body(i) for 0 <= i < n, in contiguous shares, one per thread. `work` is about the bytes touched by one i: small jobs stay on one thread.
template <class Body>
void for_each(std::int64_t n, std::int64_t work, const Body& body) {
  constexpr std::int64_t worth_a_thread = 32 * 1024;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (n > 1 && n * work > worth_a_thread)
#endif
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

/// body(begin, n) for consecutive pieces of `count` values, each about `work` bytes. Pieces depend only on `count`.
template <class Body>
void for_each_piece(std::int64_t count, std::int64_t work, const Body& body) {
  constexpr std::int64_t piece = 4096;
  for_each((count + piece - 1) / piece, work * piece, [&](std::int64_t i) {
    const std::int64_t begin = i * piece;
    body(begin, count - begin < piece ? count - begin : piece);
  });
}

/// The same with jobs of unequal length: a thread takes the next when it is done. Only if no result depends on the assignment.
template <class Body>
void for_each_uneven(std::int64_t n, const Body& body) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) if (n > 1)
#endif
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace octet::cpu::OCTET_ISA
