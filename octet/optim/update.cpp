#include "octet/optim/update.hpp"

namespace octet::optim {

States allocate_states(Stream& stream, const std::vector<WantedState>& wanted, bool offload) {
  States out;
  std::int64_t size = 0, scalars = 0;
  std::byte* next = nullptr;
  const auto take = [&](Shape shape, DType type) {
    const Tensor t{next, shape, type};
    const std::int64_t bytes = round_up(shape.count() * std::int64_t(octet::size_of(type)), std::int64_t(Arena::alignment));
    if (next != nullptr) next += bytes;
    else size += bytes;
    return t;
  };
  const auto take_all = [&] {
    out.variables.clear(), scalars = 0;
    for (const auto& [shape, s] : wanted) {
      Stored v{.codes = take(shape, code_type(s)), .scales = {}, .storage = s};
      if (scales_blocks(s)) v.scales = take(scales_shape(s, shape.count()), scales_type(s));
      if (scales_tensor(s) && out.scalars) v.scales = out.scalars.rows(scalars, 1).reshaped({2});
      scalars += scales_tensor(s);
      out.variables.push_back(v);
    }
  };
  take_all();  // for the size
  if (scalars > 0) out.scalars = stream.zeros({scalars, 2}, DType::f32, Lifetime::run, Category::optimizer);
  const bool apart = offload && stream.apart_from_host();
  next = stream.zeros({size}, DType::u8, apart ? Lifetime::host : Lifetime::run, Category::optimizer).as<std::byte>();
  take_all();
  return out;
}

}  // namespace octet::optim
