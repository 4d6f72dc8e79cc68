#include "octet/plan/software.hpp"

namespace octet::plan {

Software octet_software(const optim::StateStorage& storage, std::int64_t zero, bool eight_bit) {
  const auto bytes = [](Storage x) { return double(size_of(code_type(x))); };
  Software s;
  s.name = "Octet", s.eight_bit = eight_bit;
  s.gradient = bytes(storage.gradients), s.sent_gradient = s.gradient, s.sent_weight = eight_bit ? 1 : 2;
  const double moments = bytes(storage.m) + bytes(storage.v), master = bytes(storage.master);
  s.divided = moments + (zero > 0 ? master : 0), s.weight = zero > 0 ? s.sent_weight : master;
  s.operands = zero == 0 ? 2 : zero < 3 && eight_bit ? 1 : 0;
  s.end_weight = zero > 0 ? 2 : 4, s.end_divided = zero > 0 ? 12 : 8;
  s.passes = storage.gradients == Storage::f32 ? 0 : 2 * (4 + s.gradient);  // a GEMM's result in FP32 is added to codes
  s.logit_bytes = 0;                                                        // the head makes them in chunks
  s.overlaps_tensor = false;                                                // measured on two H200
  s.rows_to_experts = 3, s.sends_codes_to_experts = true;                   // x again in backward
  s.copies_experts = true;
  return s;
}

void add_encoding(Software& s, const ops::QuantizeSpec& x) {
  if (!x.quantizes()) return;
  if (x.rows.cols > 0) s.product_rate = 0.9, s.encoding_traffic = 0.3;
  else if (!x.scale_known()) s.encoding_traffic = 0.45;
}

}  // namespace octet::plan
