#pragma once

// Only for *.cuda.cu files: the work of one pass over a matrix for a Sink.

#include "octet/ops/quantize/sink.hpp"

namespace octet::cuda {

inline constexpr int tile_side = 128, tile_threads = 256;

/// The work of a pass for one orientation of the codes.
enum class Part : int {
  nothing,
  constant,       // encode with one scale, which is in memory or follows from a maximum there
  lines,          // encode with a scale per line, in memory
  square,         // encode with the scale of each tile, found here
  blocks,         // encode with the scale of every 2^shift values of a line, found here
  top_of_tensor,  // raise the maximum of all values: codes come in the next pass
  top_of_lines,   // the same for every line
};
constexpr bool encodes(Part p) { return p >= Part::constant && p <= Part::blocks; }

/// One orientation. A line is a row of the operand: a row of the matrix, or a column for the transposed operand.
struct Side {
  Part part = Part::nothing;
  bool counts = false;  // this orientation's codes and scales are the ones that health counts
  bool e8m0 = false;    // type of the descales, otherwise f32
  int shift = 7;
  float overflow = 0;  // see BlockRule
  std::uint8_t* codes = nullptr;
  /// Of the tensor, or of every line. Negative, of a line: minus the scale, and some value lands beyond the format's largest or is
  /// infinite.
  const float* scale = nullptr;
  const float* top = nullptr;  // of the tensor, instead of its scale
  float* tops = nullptr;       // maxima that are collected
  void* descales = nullptr;    // written where scales are found
  std::int64_t line_stride = 0, block_stride = 0;
  std::int64_t lines = 0, blocks = 0, stored_lines = 0, stored_blocks = 0;  // of the descales' layout, without and with padding
};

struct TileJob {
  std::int64_t rows = 0, cols = 0;
  void* plain = nullptr;  // written when set
  Side row, col;
  bool same = false;  // both orientations have one scale per tile: the same codes
  bool e5m2 = false;
  bool count = false, noise = false;  // health also gets saturated and flushed counts, and the squares
  bool wide_columns = false;          // 16 codes of a column can be stored at once
  bool last_first = false;            // begin with the last rows: they were touched last and may still be in the L2 cache
  ScaleRule rule = ScaleRule::quotient;
  float format_max = 0;
  const float* descale = nullptr;  // of a scale that was known
  float* amax = nullptr;           // raised
  ops::QuantizeHealth* health = nullptr;
};

/// The pass in which values are made: plain values are stored, and codes of every scale that is known or local; maxima are collected for
/// the others. Clears the maxima.
TileJob first_job(Queue, const ops::Sink&);
/// The second pass: turns maxima into scales, then encodes `values`; those of FP16 are multiplied by `descale`. Does nothing if all codes
/// were stored in the first pass.
void encode_waiting(Queue, const ops::Sink&, const Tensor& values, const Tensor& descale = {});

}  // namespace octet::cuda
