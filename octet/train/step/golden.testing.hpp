#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "octet/io/tensor_folder_writer.hpp"
#include "octet/io/tensor_view.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/scratch.hpp"

// The stored results of tests/peers/golden.py, and the weights and tokens that they are of.

namespace octet::train::testing {

struct GoldenGradient {
  std::string name;
  std::vector<std::int64_t> shape;
  double norm = 0, sum = 0, largest = 0;
  std::vector<std::pair<std::size_t, double>> samples;  // flat index, value
};

struct Golden {
  std::string config;  // config.json
  std::int64_t rows = 0, length = 0;
  double loss = 0;
  std::vector<GoldenGradient> gradients;
  double largest_logit = 0;
  std::vector<std::pair<std::size_t, double>> logits;  // flat index, value
  std::vector<double> losses;                          // of a short training
  std::int64_t mtp_depth = 0;                          // layers of multi-token prediction; 0: none, and nothing else counts
  double mtp_factor = 0;                               // of their loss
  std::vector<double> mtp_losses;                      // of further tokens, in the same training
};

inline std::pair<std::size_t, double> sample_of(const std::string& text) {
  return {std::stoull(text), std::stod(text.substr(text.find(':') + 1))};
}

inline GoldenGradient gradient_of(const std::string& name, std::istringstream& line) {
  GoldenGradient g{.name = name};
  std::string shape, sample;
  line >> shape >> g.norm >> g.sum >> g.largest;
  std::istringstream dimensions(shape);
  for (std::string d; std::getline(dimensions, d, 'x');) g.shape.push_back(std::stoll(d));
  while (line >> sample) g.samples.push_back(sample_of(sample));
  return g;
}

inline Golden read_golden(const std::string& family) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/" + family + ".txt");
  Golden golden;
  std::string sample;
  double loss = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "config") std::getline(line, golden.config);
    else if (key == "tokens") line >> golden.rows >> golden.length;
    else if (key == "loss") line >> golden.loss;
    else if (key == "logits")
      for (line >> golden.largest_logit; line >> sample;) golden.logits.push_back(sample_of(sample));
    else if (key == "losses")
      while (line >> loss) golden.losses.push_back(loss);
    else if (key == "further")
      for (line >> golden.mtp_depth >> golden.mtp_factor; line >> loss;) golden.mtp_losses.push_back(loss);
    else if (key != "#") golden.gradients.push_back(gradient_of(key, line));
  }
  return golden;
}

/// golden.py's draw(): the i-th word that belongs to a name.
inline std::uint32_t draw(std::string_view name, std::size_t i) {
  std::uint32_t h = 0x811C9DC5;
  for (const char byte : name) h = (h ^ std::uint8_t(byte)) * 0x01000193;
  h += std::uint32_t(i) * 0x9E3779B9;
  h = (h ^ h >> 16) * 0x85EBCA6B;
  h = (h ^ h >> 13) * 0xC2B2AE35;
  return h ^ h >> 16;
}

/// golden.py's start(): the same bits.
inline std::vector<float> start(const GoldenGradient& g) {
  const bool norm = g.shape.size() == 1 && g.name.ends_with(".weight");
  std::vector<float> out(std::size_t(std::accumulate(g.shape.begin(), g.shape.end(), std::int64_t(1), std::multiplies<>())));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = float(draw(g.name, i) >> 16) * 0x1p-17f - 0.25f + (norm ? 1.0f : 0.0f);
  return out;
}

inline data::Batch batch_of(const Golden& golden, std::int64_t vocabulary) {
  data::Batch b;
  b.rows = golden.rows, b.length = golden.length;
  const auto token = [&](std::int64_t i) { return std::int32_t(draw("tokens", std::size_t(i)) % std::uint32_t(vocabulary)); };
  for (std::int64_t r = 0; r < b.rows; ++r)
    for (std::int64_t p = 0; p < b.length; ++p) {
      b.inputs.push_back(token(r * (b.length + 1) + p));
      b.targets.push_back(token(r * (b.length + 1) + p + 1));
    }
  return b;
}

inline void write_model(const octet::testing::Scratch& scratch, const Golden& golden) {
  scratch.write("model/config.json", golden.config);
  std::vector<io::TensorSpec> specs;
  for (const GoldenGradient& g : golden.gradients) specs.push_back({g.name, io::StoredDType::f32, g.shape});
  io::TensorFolderWriter writer(scratch.at("model"), specs);
  for (const GoldenGradient& g : golden.gradients) writer.append(g.name, io::from_f32(start(g), io::StoredDType::f32));
  writer.commit();
}

/// Within `share` of the tensor's norm, which bounds norm and, by Cauchy and Schwarz, the sum; entries within that share of the largest.
inline void expect_near(const std::vector<float>& ours, const GoldenGradient& golden, double share) {
  double squares = 0, sum = 0, largest = 0;
  for (const float v : ours) squares += double(v) * v, sum += v, largest = std::max(largest, std::fabs(double(v)));
  EXPECT_NEAR(std::sqrt(squares), golden.norm, share * golden.norm) << golden.name;
  EXPECT_NEAR(sum, golden.sum, share * golden.norm * std::sqrt(double(ours.size()))) << golden.name;
  EXPECT_NEAR(largest, golden.largest, share * golden.largest) << golden.name;
  EXPECT_FALSE(golden.samples.empty()) << golden.name;
  for (const auto& [i, value] : golden.samples) EXPECT_NEAR(ours.at(i), value, share * golden.largest) << golden.name << " [" << i << "]";
}

}  // namespace octet::train::testing
