#pragma once

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "octet/tensor/tensor.hpp"

namespace octet::ops {

/// How the codes of one GEMM operand are scaled, as cuBLASLt distinguishes it: unscaled, one descale per tensor, per row, per 128 values of
/// a row, per 128 x 128 block, or one e8m0 per 32 values of a row.
enum class GemmScale : std::uint8_t { none, tensor, row, row_128, square_128, row_32 };
std::string_view name(GemmScale);

/// All that the choice of an algorithm depends on: d[M, N] (+)= sum_k a[m, k] b[n, k].
struct GemmForm {
  std::int64_t M = 0, N = 0, K = 0;
  DType a = DType::bf16, b = DType::bf16, d = DType::bf16;
  GemmScale a_scale = GemmScale::none, b_scale = GemmScale::none;
  bool a_transposed = false, b_transposed = false;  // stored [K, M], [K, N]
  bool accumulate = false, biased = false, fast = false;
  bool factor = false;  // a factor for the sums lies in the GPU's memory
  bool untimed = false;
  int alignment = 256;  // bytes that a's, b's and d's addresses are multiples of
  friend auto operator<=>(const GemmForm&, const GemmForm&) = default;
};
/// "1152x16384x896 e4m3.tensor e4m3.tensor bf16 fast": one line, unique per form.
std::string to_text(const GemmForm&);

/// An algorithm for one form: the library's, by its opaque description and its workspace, or one of Octet's own kernels for the form; and
/// its time if it was timed.
struct GemmAlgorithm {
  int own = 0;  // 1: the first of Octet's own; 0: the library's
  std::array<std::uint64_t, 8> config{};
  std::size_t workspace_bytes = 0;
  double microseconds = 0;  // 0: not timed
  friend bool operator==(const GemmAlgorithm&, const GemmAlgorithm&) = default;
};

/// The GEMM algorithms that this process chose on a GPU. A run folder stores text() and restores it by load(): equal algorithms
/// give equal bits. A new form gets the fastest of the library's first candidates and Octet's own kernels, timed once on the actual
/// operands, or, on a deterministic stream (Target::deterministic), the library's first, the same in every run. Thread-safe.
class GemmAlgorithms {
 public:
  static GemmAlgorithms& of_process();

  std::optional<GemmAlgorithm> find(const GemmForm&) const;
  void store(const GemmForm&, const GemmAlgorithm&);

  /// Its first line names the library and the GPU (`machine`, see gemm_library()); each other line is a form, then " = ", then the
  /// algorithm as hexadecimal words, or the word "octet", "octet2" for the second of them, and its time.
  std::string text(std::string_view machine) const;
  /// Adds the algorithms of such a text; known forms keep theirs. Returns false and adds nothing when it was written for another library or
  /// GPU. Throws DataError, naming the line, on anything that text() does not write.
  bool load(std::string_view text, std::string_view machine);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, GemmAlgorithm, std::less<>> algorithms_;
};

}  // namespace octet::ops
