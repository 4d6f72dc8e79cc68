#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace octet {

/// Rows of cells, the head first.
using TextTable = std::vector<std::vector<std::string>>;

/// The cells under each other, two spaces apart, a line of dashes under the head, a newline at the end: the first `left` columns
/// left-aligned, the others right. Characters are counted, not bytes. Rows may be shorter than the head.
std::string aligned(const TextTable& table, std::size_t left = 1);

/// The same in several tables, one under the other, each at most `width` characters wide where one column beside the first fits: columns go
/// to the next table where they do not fit, and each begins with the first column. Rows are as long as the head.
std::string aligned_within(const TextTable& table, std::size_t width = 80);

}  // namespace octet
