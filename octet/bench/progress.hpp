#pragma once

#include <cstddef>
#include <string>

namespace octet::bench {

/// Tells in the log which of several measurements begins, and about how long those that are left take: as long as those before, on average.
class Progress {
 public:
  explicit Progress(std::size_t total);
  void begin(const std::string& what);

 private:
  std::size_t total_, begun_ = 0;
  double start_;
};

/// "measuring gemm, 2 of 7, about 12 s left ..."; without a time before the first one has ended.
std::string progress_text(const std::string& what, std::size_t number, std::size_t total, double elapsed_seconds);

}  // namespace octet::bench
