#include "octet/parallel/copied_gradients.hpp"

#include <algorithm>

#include "octet/parallel/eight_bit_sum.hpp"

namespace octet::parallel {

bool CopiedGradients::sums_copies(const Cut& cut, Storage gradients) {
  return !has_scales(gradients) || (gradients == Storage::e4m3 && cut.alone % storage_block == 0);
}

CopiedGradients::CopiedGradients(comm::Communicator& group, const nn::Parameters& parameters, const Parameter* of_both_ends)
    : of_both_ends_(of_both_ends) {
  if (group.size() == 1) return;
  split_by_heads(group, parameters);
  for (const nn::Bucket& b : parameters.buckets()) add(group, b);
}

void CopiedGradients::split_by_heads(comm::Communicator& group, const nn::Parameters& parameters) {
  int copies = 1;
  for (const nn::Bucket& b : parameters.buckets())
    for (const Parameter* p : b.parameters) {
      if (!has_copies(*p)) continue;
      check(sums_copies(p->cut, b.gradient.storage), "copied gradients: those of {} have scales, and cannot be summed", p->path);
      if (p->cut.copies < group.size()) copies = p->cut.copies;
    }
  if (copies == 1) return;
  of_heads_ = group.split(group.rank() / copies, group.rank() % copies, copies);
  std::vector<int> sharers;
  for (int i = 0; i < copies; ++i) sharers.push_back(group.rank() / copies * copies + i);
  of_heads_->report_to(group, std::move(sharers));
}

// Vectors of which all ranks have copies are a bucket of their own, in one piece of memory. Adapters are beside parts.
void CopiedGradients::add(comm::Communicator& group, const nn::Bucket& b) {
  const bool all = std::ranges::all_of(
      b.parameters, [&](const Parameter* p) { return has_copies(*p) && p->cut.copies == group.size() && p->cut.alone == 0; });
  if (all) return copies_.push_back({&b, b.gradient, &group});
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const Cut& cut = b.parameters[i]->cut;
    if (!has_copies(*b.parameters[i])) continue;
    const std::int64_t n = b.parameters[i]->shape.count() - cut.alone;
    copies_.push_back({&b, b.gradient.part(b.first[i] + cut.alone, n), cut.copies == group.size() ? &group : of_heads_.get()});
  }
}

void CopiedGradients::Copies::sum(Stream& stream) const {
  if (has_scales(gradient.storage)) EightBitSum(*owners).all_reduce(stream, gradient);
  else owners->all_reduce(stream, gradient.codes, comm::Reduction::sum);
}

void CopiedGradients::sum(Stream& stream, const nn::Bucket& bucket) const {
  for (const Copies& c : copies_)
    if (c.bucket == &bucket) c.sum(stream);
}

}  // namespace octet::parallel
