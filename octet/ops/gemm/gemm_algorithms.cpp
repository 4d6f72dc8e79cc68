#include "octet/ops/gemm/gemm_algorithms.hpp"

#include <charconv>

#include "octet/base/error.hpp"

namespace octet::ops {
namespace {

constexpr std::string_view between = " = ";

constexpr std::string_view own_kernel = "octet";

std::string words_of(const GemmAlgorithm& a) {
  if (a.own != 0) return std::string(own_kernel) + (a.own > 1 ? std::to_string(a.own) : "") + " " + fixed(a.microseconds, 1);
  char word[20];
  std::string out;
  for (const std::uint64_t w : a.config) std::snprintf(word, sizeof word, "%016llx ", static_cast<unsigned long long>(w)), out += word;
  std::snprintf(word, sizeof word, "%zx", a.workspace_bytes);
  return out + word + " " + fixed(a.microseconds, 1);
}

// The next word of a line, which is taken off it.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == line.npos ? std::string_view{} : line.substr(end + 1);
  return word;
}
template <class T, class... Base>
bool read(std::string_view word, T& out, Base... base) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out, base...);
  return error == std::errc{} && end == word.data() + word.size();
}

GemmAlgorithm algorithm_of(std::string_view words, std::int64_t line) {
  GemmAlgorithm a;
  bool good = true;
  if (words.starts_with(own_kernel)) {
    const std::string_view number = next_word(words).substr(own_kernel.size());
    a.own = 1;
    good = number.empty() || (read(number, a.own) && a.own > 1);
    if (!good || !read(next_word(words), a.microseconds) || !words.empty())
      throw DataError(format("gemm-plans.txt, line {}: must have a time after '= {}'", line, own_kernel));
    return a;
  }
  for (std::uint64_t& w : a.config) good = good && read(next_word(words), w, 16);
  good = good && read(next_word(words), a.workspace_bytes, 16) && read(next_word(words), a.microseconds) && words.empty();
  if (!good) throw DataError(format("gemm-plans.txt, line {}: must have 9 hexadecimal words and a time after '='", line));
  return a;
}

}  // namespace

std::string_view name(GemmScale s) {
  constexpr std::string_view names[] = {"", ".tensor", ".row", ".1x128", ".128x128", ".1x32"};
  return names[std::size_t(s)];
}

std::string to_text(const GemmForm& f) {
  std::string out = format("{}x{}x{} {}{}{} {}{}{} {}", f.M, f.N, f.K, f.a, name(f.a_scale), f.a_transposed ? ".transposed" : "", f.b,
                           name(f.b_scale), f.b_transposed ? ".transposed" : "", f.d);
  if (f.accumulate) out += " accumulate";
  if (f.biased) out += " bias";
  if (f.fast) out += " fast";
  if (f.factor) out += " factor";
  if (f.untimed) out += " untimed";
  if (f.alignment != 256) out += format(" aligned {}", f.alignment);
  return out;
}

GemmAlgorithms& GemmAlgorithms::of_process() {
  static GemmAlgorithms it;
  return it;
}

std::optional<GemmAlgorithm> GemmAlgorithms::find(const GemmForm& form) const {
  const std::string key = to_text(form);
  const std::lock_guard lock(mutex_);
  const auto it = algorithms_.find(key);
  return it == algorithms_.end() ? std::nullopt : std::optional(it->second);
}

void GemmAlgorithms::store(const GemmForm& form, const GemmAlgorithm& a) {
  const std::string key = to_text(form);
  const std::lock_guard lock(mutex_);
  algorithms_.insert_or_assign(key, a);
}

std::string GemmAlgorithms::text(std::string_view machine) const {
  const std::lock_guard lock(mutex_);
  std::string out = std::string(machine) + "\n";
  for (const auto& [form, algorithm] : algorithms_) out += form + std::string(between) + words_of(algorithm) + "\n";
  return out;
}

bool GemmAlgorithms::load(std::string_view text, std::string_view machine) {
  decltype(algorithms_) read_in;
  std::int64_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (++line_number == 1) {
      if (line != machine) return false;
      continue;
    }
    const std::size_t middle = line.find(between);
    if (middle == line.npos)
      throw DataError(format("gemm-plans.txt, line {}: must be a form, ' = ' and an algorithm, got '{}'", line_number, printable(line)));
    read_in.emplace(line.substr(0, middle), algorithm_of(line.substr(middle + between.size()), line_number));
  }
  const std::lock_guard lock(mutex_);
  algorithms_.merge(read_in);
  return line_number > 0;
}

void GemmAlgorithms::clear() {
  const std::lock_guard lock(mutex_);
  algorithms_.clear();
}

}  // namespace octet::ops
