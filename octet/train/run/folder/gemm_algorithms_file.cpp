#include "octet/train/run/folder/gemm_algorithms_file.hpp"

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/machine/machine.hpp"

namespace octet::train {
namespace {

constexpr std::size_t most_bytes = std::size_t(16) << 20;

constexpr const char* file = "gemm-plans.txt";

}  // namespace

void store_gemm_algorithms(const HeldFolder& folder, Device device) {
  const std::string plans = machine::gemm_algorithms_text(device);
  if (!plans.empty()) folder.write(file, [&](const std::string& path) { write_own_file(path, plans); });
}

void replay_gemm_algorithms(const std::string& run_folder, Device device) {
  const std::string path = run_folder + "/" + file;
  if (!exists(path)) return;
  const std::string plans = with_remedy("remove it", [&] { return read_file(path, most_bytes, Link::refuse); });
  if (!machine::replay_gemm_algorithms(device, plans))
    log::warn("{} is of another GPU or library: the GEMMs' algorithms are chosen again, and sums may be rounded differently", path);
}

}  // namespace octet::train
