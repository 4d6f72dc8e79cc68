#include "octet/models/model.hpp"

namespace octet::models {

void Model::refresh(Stream& stream, const scaling::Pass& pass) {
  struct Refresh final : nn::Visitor {
    Model& model;
    ops::QuantizeBatch& batch;
    const scaling::Pass& pass;
    Refresh(Model& m, ops::QuantizeBatch& b, const scaling::Pass& p) : model(m), batch(b), pass(p) {}
    int closed = -1;  // the block of the weights that come, until one of them needs it
    void block(int number) override { closed = number; }
    void weight(nn::Weight& w) override {
      if (closed >= 0 && w.refresh_reads_values(pass)) {
        if (model.block_weights_ != nullptr && model.block_weights_->in_turn()) batch.run();  // the values of the block before may go
        model.open(batch.stream(), closed, nn::BlockWeights::Needed::values), closed = -1;
      }
      w.refresh(batch, pass);
    }
  };
  ops::QuantizeBatch batch(stream);
  Refresh refresh(*this, batch, pass);
  visit(refresh);
  batch.run();
}

}  // namespace octet::models
