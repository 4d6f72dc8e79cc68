#include "octet/parallel/copied_gradients.hpp"

#include <algorithm>

namespace octet::parallel {

CopiedGradients::CopiedGradients(comm::Communicator& group, const nn::Parameters& parameters) {
  if (group.size() == 1) return;
  split_by_heads(group, parameters);
  for (const nn::Bucket& b : parameters.buckets()) add(group, b);
}

void CopiedGradients::split_by_heads(comm::Communicator& group, const nn::Parameters& parameters) {
  int copies = 1;
  for (const nn::Bucket& b : parameters.buckets())
    for (const Parameter* p : b.parameters) {
      if (p->cut.copies == 1) continue;
      check(!has_scales(b.gradient.storage), "copied gradients: those of {} have scales, and cannot be summed", p->path);
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
  const bool all =
      std::ranges::all_of(b.parameters, [&](const Parameter* p) { return p->cut.copies == group.size() && p->cut.alone == 0; });
  if (all) return copies_.push_back({&b, b.gradient.codes, &group});
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const Cut& cut = b.parameters[i]->cut;
    if (cut.copies == 1) continue;
    const Tensor all = b.cut(b.gradient, i).codes, flat = all.reshaped({all.count()});
    copies_.push_back({&b, flat.rows(cut.alone, flat.count() - cut.alone), cut.copies == group.size() ? &group : of_heads_.get()});
  }
}

void CopiedGradients::sum(Stream& stream, const nn::Bucket& bucket) const {
  for (const Copies& c : copies_)
    if (c.bucket == &bucket) c.owners->all_reduce(stream, c.gradient, comm::Reduction::sum);
}

void CopiedGradients::sum(Stream& stream) const {
  for (const Copies& c : copies_) c.owners->all_reduce(stream, c.gradient, comm::Reduction::sum);
}

}  // namespace octet::parallel
