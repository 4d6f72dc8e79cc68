#include "octet/parallel/sharding.hpp"

namespace octet::parallel {
namespace {

// Only on a GPU work of two queues runs at one time.
std::unique_ptr<Stream> queue_beside(Stream& stream, const comm::Communicator& ranks, const CommConfig& c, bool trains) {
  return trains && ranks.size() > 1 && c.overlap && stream.apart_from_host() ? std::make_unique<Stream>(stream) : nullptr;
}

Sharers sharers_of(Axes& axes, bool trains) {
  comm::Communicator& alone = axes.alone();
  if (!trains) return {alone, alone, alone, alone, alone, alone, alone};
  return {axes.data(), axes.same_experts(), axes.shards(), axes.shards_of_stacks(), axes.same_shard(), axes.tensor(), axes.experts()};
}

// The first and the last stage, where this is one of them and both have a parameter.
std::unique_ptr<comm::Communicator> stages_of(Axes& axes, bool shared) {
  comm::Communicator& stages = axes.pipeline();
  if (!shared || !axes.has_stages()) return nullptr;
  const int last = stages.size() - 1;
  const bool end = stages.rank() == 0 || stages.rank() == last;
  std::unique_ptr<comm::Communicator> out = stages.split(end ? 0 : 1,
                                                         stages.rank() == 0 ? 0
                                                         : end              ? 1
                                                                            : stages.rank() - 1,
                                                         end ? 2 : last - 1);
  if (!end) return nullptr;
  const int first = axes.all().rank() % axes.of_stage();
  out->report_to(axes.all(), {first, first + last * axes.of_stage()});
  return out;
}

std::unique_ptr<SideWork> work_beside(Stream* queue) {
  return queue != nullptr ? std::make_unique<QueuedWork>(*queue) : std::make_unique<SideWork>();
}

}  // namespace

Sharding::Sharding(Stream& stream, Axes& axes, nn::Parameters& parameters, const std::vector<nn::FrozenBucket>& frozen, const CommConfig& c,
                   bool trains, Parameter* ends)
    : axes_(axes),
      parameters_(parameters),
      ends_(ends),
      activation_queue_(queue_beside(stream, axes.tensor(), c, trains)),
      gradient_queue_(queue_beside(stream, axes.data(), c, trains)),
      expert_queue_(queue_beside(stream, axes.experts(), c, trains && axes.turns().pairs())),
      beside_products_(work_beside(activation_queue_.get())),
      beside_experts_(work_beside(expert_queue_.get())),
      in_turn_(*beside_products_, axes.turns_of_rows()),
      copied_gradients_(trains ? axes.tensor() : axes.alone(), parameters, ends),
      of_ends_(stages_of(axes, trains && ends != nullptr)),
      gradient_sums_(stream, gradient_queue_.get(), sharers_of(axes, trains), {ends, of_ends_ ? *of_ends_ : axes.alone()}, parameters, c,
                     copied_gradients_),
      weights_(stream, gradient_queue_.get(), sharers_of(axes, true), parameters, frozen, axes.parts()) {
  for (const Parameter* p : parameters.list()) axes.parts().reserve(stream, p->shape.count());
  axes.partition().set_beside(in_turn_), axes.expert_exchange().set_beside(*beside_experts_);
  if (shards_masters()) owners_.push_back(&axes.shards());
  else if (axes.divides_experts()) owners_.push_back(&axes.experts());
  for (comm::Communicator* model : {&axes.tensor(), &axes.pipeline()})
    if (model->size() > 1) owners_.push_back(model);
  if (axes.has_stages()) reserve_for_values(stream);
  // Stages have other parameters, so that all of them draw as one does.
  for (Parameter* p : parameters.list()) p->gradient.set_copy(axes.all().rank() % axes.of_stage());
}

void Sharding::begin_step(int micro_batches, bool exchanges) {
  exchanges_ = exchanges;
  gradient_sums_.begin_step(micro_batches, exchanges);
}

void Sharding::begin_micro_batch(int micro_batch) {
  gradient_sums_.begin_micro_batch(micro_batch);
  weights_.forget_blocks();
}

void Sharding::join(Stream& stream) {
  gradient_sums_.join(stream);
  weights_.forget_blocks();
}

// Where data ranks sum a gradient, that of copies was summed with them. Sums of a parameter of both ends are then there: of divided
// gradients, those of the own part, which is the same on both stages.
void Sharding::end_step(Stream& stream) {
  if (!exchanges_) return;
  gradient_sums_.sum_other_copies(stream);
  if (of_ends_) of_ends_->all_reduce(stream, ends_->gradient.stored().values(), comm::Reduction::sum);
  gradient_sums_.join_ends(stream);
}

void Sharding::sum_over_parts(Stream& stream, const Tensor& x) {
  for (comm::Communicator* ranks : owners_) ranks->all_reduce(stream, x, comm::Reduction::sum);
}

void Sharding::max_over_masters(Stream& stream, const Tensor& x) {
  if (shards_masters()) axes_.shards().all_reduce(stream, x, comm::Reduction::max);
}

bool Sharding::data_ranks_meet() const { return axes_.divides_experts() || parameters_.shard().shards(nn::Sharded::weights); }

bool Sharding::computes_alone() const {
  return !axes_.divides_layers() && !axes_.divides_sequences() && !axes_.has_stages() && !data_ranks_meet();
}

comm::Traffic Sharding::traffic(comm::Collective c) const {
  const comm::Traffic sum = axes_.traffic(c) + copied_gradients_.traffic(c);
  return of_ends_ ? sum + of_ends_->traffic(c) : sum;
}

void Sharding::visit_state(StateVisitor& visitor) { visitor.section("gradient_sums", gradient_sums_); }

}  // namespace octet::parallel
