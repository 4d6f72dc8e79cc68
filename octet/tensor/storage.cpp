#include "octet/tensor/storage.hpp"

namespace octet {

Shape scales_shape(Storage s, std::int64_t count) {
  const std::int64_t scalars = facts(s).scalars;
  if (!scales_blocks(s)) return {scalars};
  const std::int64_t blocks = (count + storage_block - 1) / storage_block;
  return scalars > 1 ? Shape{blocks, scalars} : Shape{blocks};
}

DType scales_type(Storage s) { return facts(s).scales; }

Stored Stored::plain(const Tensor& t) {
  check(t.dtype == DType::f32 || t.dtype == DType::bf16, "storage: plain values are f32 or bf16, got {}", t.dtype);
  return {.codes = t, .scales = {}, .storage = t.dtype == DType::f32 ? Storage::f32 : Storage::bf16};
}

const Tensor& Stored::values() const {
  check(!has_scales(storage), "storage: {} has scales, so its codes are not the values", storage);
  return codes;
}

Stored Stored::part(std::int64_t begin, std::int64_t n) const {
  const bool from_block = begin % storage_block == 0 || !scales_blocks(storage);
  check(begin >= 0 && n >= 0 && begin + n <= count() && from_block, "storage: values {} to {} of {} {} do not begin with a block", begin,
        begin + n, count(), storage);
  if (n == count()) return *this;
  Stored out{.codes = codes.reshaped({count()}).rows(begin, n), .scales = scales, .storage = storage};
  if (scales_blocks(storage)) out.scales = scales.rows(begin / storage_block, ceil_div(n, storage_block));
  return out;
}

}  // namespace octet
