#include "octet/train/study/first_gradient.hpp"

#include <cmath>
#include <vector>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/base/checksum.hpp"
#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"

namespace octet::train {
namespace {

constexpr const char *tensor = "gradient", *checksum = "xxh3";

std::string sum_of(std::span<const std::byte> bytes) {
  data::Checksummer all;
  all.add(bytes);
  return to_text(all.sum());
}

std::string remedy(const std::string& baseline_folder) {
  return format("restore it from a copy, or remove {}: the baseline is then trained again", printable(baseline_folder));
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) { throw DataError(format("{}: {}", printable(path), what)); }

std::vector<float> read_gradient(const std::string& path) {
  if (!exists(path)) refuse(path, "there is no such file");
  const auto file = io::SafetensorsFile::open(path, io::Link::refuse);
  const auto stored = file.find(tensor);
  if (!stored || stored->dtype != io::StoredDType::f32) refuse(path, format("there is no tensor \"{}\" of FP32 values in it", tensor));
  if (file.metadata() != io::Metadata{{checksum, sum_of(stored->bytes)}})
    refuse(path, "its checksum does not fit: the file was damaged or replaced");
  return io::to_f32(*stored);
}

}  // namespace

std::string first_gradient_file(const std::string& run_folder) { return run_folder + "/first-gradient.safetensors"; }

void write_first_gradient(const std::string& run_folder, std::span<const float> gradient) {
  const auto bytes = std::as_bytes(gradient);
  io::SafetensorsWriter file(first_gradient_file(run_folder), {{tensor, io::StoredDType::f32, {std::int64_t(gradient.size())}}},
                             {{checksum, sum_of(bytes)}});
  file.append(tensor, bytes);
  file.commit();
}

std::vector<float> read_first_gradient(const std::string& baseline_folder) {
  return with_remedy(remedy(baseline_folder), [&] { return read_gradient(first_gradient_file(baseline_folder)); });
}

double cosine_with_first_gradient(const std::string& baseline_folder, std::span<const float> a) {
  const std::vector<float> b = read_first_gradient(baseline_folder);
  if (a.size() != b.size())
    refuse(first_gradient_file(baseline_folder), format("it has {} values, the model has {} parameters: it belongs to another model; {}",
                                                        b.size(), a.size(), remedy(baseline_folder)));
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

}  // namespace octet::train
