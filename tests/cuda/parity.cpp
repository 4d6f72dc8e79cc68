#include "tests/cuda/parity.hpp"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "octet/tensor/cuda/device.hpp"

// The parity program: octet_cuda_parity [part of a name, or ""] [share/shares, such as 0/4, for several processes]. Prints the worst ratio
// of an error to its bound for every case and fails when one is above 1, or when bits differ that must not. Exit code 77: there is no GPU
// here.

namespace octet::parity {
namespace {

std::vector<std::vector<Case> (*)()>& makers() {
  static std::vector<std::vector<Case> (*)()> list;
  return list;
}

double unit(DType t) { return t == DType::bf16 ? 0x1p-8 : t == DType::f16 ? 0x1p-11 : t == DType::f32 ? 0x1p-24 : 0; }
double smallest(DType t) { return t == DType::f16 ? 0x1p-25 : 0; }  // half the distance between numbers near 0

// The worst of a result's elements: its error over its bound, infinite where bits differ that must not.
struct Worst {
  double ratio = 0;
  std::int64_t at = -1;
  std::string text;
};
double number_at(const Tensor& t, std::int64_t i) {
  switch (t.dtype) {
    case DType::f64: return t.as<double>()[i];
    case DType::i64: return double(t.as<std::int64_t>()[i]);
    case DType::i32: return double(t.as<std::int32_t>()[i]);
    case DType::u8: return double(t.u8()[i]);
    default: return double(value_at(t, i));
  }
}
Worst share_of(const Tensor& cpu, const Tensor& gpu, double allowed) {
  std::int64_t differing = 0;
  const std::size_t size = size_of(cpu.dtype);
  for (std::size_t i = 0; i < cpu.bytes(); i += size) differing += std::memcmp(cpu.as<char>() + i, gpu.as<char>() + i, size) != 0;
  const double share = double(differing) / double(cpu.count());
  return {share / allowed, 0, format("{}% differ, {}% may", fixed(100 * share, 3), fixed(100 * allowed, 3))};
}
Worst worst_of(const Tensor& cpu, const Tensor& gpu, const Nearness& how) {
  if (how.share > 0) return share_of(cpu, gpu, how.share);
  Worst w;
  const std::size_t size = size_of(cpu.dtype);
  double largest = 0;
  for (std::int64_t i = 0; how.of_largest > 0 && i < cpu.count(); ++i) largest = std::max(largest, std::fabs(number_at(cpu, i)));
  for (std::int64_t i = 0; i < cpu.count(); ++i) {
    if (std::memcmp(cpu.as<char>() + std::size_t(i) * size, gpu.as<char>() + std::size_t(i) * size, size) == 0) continue;
    const double a = number_at(cpu, i), b = number_at(gpu, i);
    if (size > 1 && std::isnan(a) && std::isnan(b)) continue;  // its payload is the machine's choice; codes of 8 bits have one NaN
    double ratio = INFINITY;
    if (!how.exact)
      ratio = std::fabs(a - b) / (how.bound(i) + how.of_largest * largest + 2 * unit(cpu.dtype) * std::max(std::fabs(a), std::fabs(b)) +
                                  2 * smallest(cpu.dtype) + 1e-37);
    if (!(ratio <= w.ratio)) w = {ratio, i, format("{} on the CPU, {} on the GPU", a, b)};
  }
  return w;
}

// Runs one case; its worst ratio.
double run(const Case& c) {
  Side cpu(Device::cpu), gpu(Device::cuda);
  c.run(cpu), c.run(gpu);
  check(cpu.results().size() == gpu.results().size(), "parity: {} has {} and {} results", c.name, cpu.results().size(),
        gpu.results().size());
  double most = 0;
  for (std::size_t i = 0; i < cpu.results().size(); ++i) {
    const auto& a = cpu.results()[i];
    const HostCopy b(gpu.stream(), gpu.results()[i].tensor);
    const Worst w = worst_of(a.tensor, b.tensor(), a.how);
    if (!(w.ratio <= most)) most = w.ratio;
    if (w.ratio > 1 || a.how.share > 0)
      std::printf("  %s: %s at %lld: %s\n", c.name.c_str(), a.name.c_str(), (long long)w.at, w.text.c_str());
  }
  return most;
}

}  // namespace

Cases::Cases(std::vector<Case> (*make)()) { makers().push_back(make); }

int run_all(std::string_view part, int share, int shares) {
  int failed = 0, count = 0, named = 0;
  double most = 0;
  for (const auto& make : makers())
    for (const Case& c : make()) {
      if (c.name.find(part) == std::string::npos || named++ % shares != share) continue;
      ++count;
      double ratio = INFINITY;
      try {
        ratio = run(c);
      } catch (const std::exception& e) {
        std::printf("  %s: %s\n", c.name.c_str(), e.what());
      }
      const bool bad = !(ratio <= 1);
      failed += bad;
      if (!bad && ratio > most) most = ratio;
      std::printf("%-6s %8.4f  %s\n", bad ? "FAIL" : "ok", ratio, c.name.c_str());
      std::fflush(stdout);
    }
  std::printf("%d cases, %d failed; worst ratio of the others %.4f\n", count, failed, most);
  return failed != 0 || count == 0;
}

}  // namespace octet::parity

int main(int argc, char** argv) {
  if (!octet::cuda::available()) {
    std::printf("skipped: %s\n", octet::cuda::why_unavailable().c_str());
    return 77;
  }
  int share = 0, shares = 1;
  if (argc > 2 && (std::sscanf(argv[2], "%d/%d", &share, &shares) != 2 || share < 0 || share >= shares)) {
    std::fprintf(stderr, "%s: wants a share such as 0/4\n", argv[2]);
    return 2;
  }
  return octet::parity::run_all(argc > 1 ? argv[1] : "", share, shares);
}
