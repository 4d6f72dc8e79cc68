#include "octet/ops/visits/visits.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void visited_members(const Tensor& chosen, const Tensor& visited, const ops::VisitSizes& s) {
  for_each(chosen.shape[0], s.choices * s.members, [&](std::int64_t t) {
    ops::visit_row(s, chosen.as<std::int32_t>() + t * s.choices, visited.as<std::int32_t>() + t * s.members);
  });
}

void pack_choices(const ops::PackedChoices& p, const Tensor& from, const ops::VisitSizes& s) {
  for_each(p.chosen.shape[0], s.choices * s.members, [&](std::int64_t t) {
    ops::pack_row(s, p.chosen.as<std::int32_t>() + t * s.choices, p.visited.as<std::int32_t>() + t * s.members,
                  p.row.as<std::int32_t>() + t * s.members, from.f32() + t * s.choices, p.experts.as<std::int32_t>(), p.weights.f32());
  });
}

void unpack_weights(const ops::PackedChoices& p, const Tensor& to, const ops::VisitSizes& s) {
  for_each(p.chosen.shape[0], s.choices * s.members, [&](std::int64_t t) {
    ops::each_packed(s, p.chosen.as<std::int32_t>() + t * s.choices, p.visited.as<std::int32_t>() + t * s.members,
                     p.row.as<std::int32_t>() + t * s.members, [&](std::int64_t k, std::int64_t r, std::int64_t j) {
                       to.f32()[t * s.choices + k] = p.weights.f32()[r * s.packed + j];
                     });
  });
}

}  // namespace octet::cpu::OCTET_ISA
