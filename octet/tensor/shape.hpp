#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace octet {

/// Up to four dimensions, outermost first. Prints as "[8192, 4096]".
struct Shape {
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> list) {
    for (const auto d : list) dims[std::size_t(rank++)] = d;
  }
  std::int64_t operator[](int i) const { return dims[std::size_t(i)]; }
  std::int64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

std::string to_text(const Shape&);

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace octet
