#include "octet/telemetry/quantization_loss.hpp"

#include "octet/numerics/rounding_sqnr.hpp"
#include "octet/tensor/dtype.hpp"

namespace octet::telemetry {

double rounding_sqnr(const std::string& format) {
  if (format == name(DType::e4m3)) return octet::rounding_sqnr<E4M3>();
  if (format == name(DType::e5m2)) return octet::rounding_sqnr<E5M2>();
  return NAN;
}

std::vector<float> below_rounding(const HealthEvent& e, std::span<const QuantizerFacts> quantizers) {
  std::vector<float> out;
  for (std::size_t i = 0; i < quantizers.size() && i < e.sqnr_db.size(); ++i)
    out.push_back(float(rounding_sqnr(quantizers[i].format) - double(e.sqnr_db[i])));
  return out;
}

}  // namespace octet::telemetry
