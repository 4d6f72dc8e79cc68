#include <gtest/gtest.h>

#include <cstring>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/stored/stored.hpp"
#include "tests/testing/tensors.hpp"

// Parts of a parameter, as tensor ranks have them, against the whole parameter.

namespace octet::ops {
namespace {

using enum Storage;

const Shape whole_shape{40, 300};

// Whole rows, columns from and of a multiple of 8 or not, and pieces that are apart.
std::vector<std::vector<CutPiece>> cuts() {
  return {Cut::of_rows(whole_shape, 7, 11).pieces,
          Cut::of_columns(whole_shape, 64, 104).pieces,
          Cut::of_columns(whole_shape, 13, 46).pieces,
          Cut::of_columns(whole_shape, 299, 1).pieces,
          {{600, 300, 600, 600}, {900, 4800, 900, 900}, {301, 9001, 301, 301}}};
}

std::vector<float> at_places(const std::vector<float>& whole, const std::vector<CutPiece>& pieces) {
  std::vector<float> out;
  each_run(pieces, [&](std::int64_t, std::int64_t place, std::int64_t n) {
    out.insert(out.end(), whole.begin() + place, whole.begin() + place + n);
  });
  return out;
}

// A variable whose scale per tensor, where it has one, is that of one more value.
Stored encoded(Stream& s, std::vector<float> x, Storage storage) {
  x.push_back(4);
  Stored out{.codes = s.empty({std::int64_t(x.size())}, code_type(storage)), .scales = {}, .storage = storage};
  if (scales_tensor(storage)) out.scales = s.zeros({2}, DType::f32);
  encode_stored(s, testing::tensor_of(s, x, out.codes.shape), out, Tiny::keep);
  out.codes = out.codes.rows(0, std::int64_t(x.size()) - 1);
  return out;
}

struct Update {
  Stream stream{Device::cpu};
  AdamWParameter parameter;

  // Of the values at these places, from the slice's first on.
  Update(const std::vector<float>& of_whole, Storage value, Storage m, Storage v, const std::vector<CutPiece>& pieces, std::int64_t first) {
    std::vector<float> x = pieces.empty() ? of_whole : at_places(of_whole, pieces), squares;
    x.erase(x.begin(), x.begin() + first);
    for (const float a : x) squares.push_back(a * a);
    parameter = {.value = encoded(stream, x, value),
                 .grad = encoded(stream, x, f32),
                 .moments = {encoded(stream, x, m), encoded(stream, squares, v)},
                 .key = 77,
                 .first = first,
                 .gradient_amax = testing::tensor_of(stream, {4}, {1})};
    if (!pieces.empty()) {
      std::vector<CutPiece> all = pieces;
      all.push_back(end_of_places);
      parameter.places = stream.empty({std::int64_t(all.size()), 4}, DType::i64);
      upload(stream, all.data(), parameter.places);
    }
    const Tensor step = stream.empty({adamw_step_floats}, DType::f32);
    *step.as<AdamWStep>() = {.learning_rate = 3e-4f, .bias_correction1 = 1.5f, .bias_correction2 = 2.5f, .updates = 0x123456789};
    adamw(stream, {.parameters = std::span(&parameter, 1), .step = step});
  }
  std::vector<float> codes(int variable) const {
    const Tensor& t = (variable == 0 ? parameter.value : variable == 1 ? parameter.moments.m : parameter.moments.v).codes;
    const std::vector<double> values = testing::values(t);
    return {values.begin(), values.end()};
  }
};

TEST(AdamWPlaces, APartIsRoundedAsItsValuesInTheWhole) {
  const std::vector<float> x = testing::gaussian(std::size_t(whole_shape.count()), 3, 0.1);
  struct Storages {
    Storage value, m, v;
  };
  for (const auto& [value, m, v] : {Storages{bf16, bf16, bf16}, {f16, f32, f32}, {f16, f32, bf16}, {f32, bf16, f16}}) {
    const Update whole(x, value, m, v, {}, 0);
    for (const std::vector<CutPiece>& pieces : cuts())
      for (const std::int64_t first : {0, 128}) {
        if (first > 0 && pieces.front().run == 1) continue;
        const Update part(x, value, m, v, pieces, first);
        for (int variable = 0; variable < 3; ++variable) {
          std::vector<float> wanted = at_places(whole.codes(variable), pieces);
          wanted.erase(wanted.begin(), wanted.begin() + first);
          EXPECT_EQ(part.codes(variable), wanted)
              << name(value) << " " << name(m) << " " << name(v) << ", from " << pieces.front().first << ": " << variable;
        }
      }
  }
}

}  // namespace
}  // namespace octet::ops
