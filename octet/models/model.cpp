#include "octet/models/model.hpp"

namespace octet::models {

void Model::refresh(Stream& stream, const scaling::Pass& pass) {
  struct Refresh final : nn::Visitor {
    Model& model;
    Stream& stream;
    const scaling::Pass& pass;
    Refresh(Model& m, Stream& s, const scaling::Pass& p) : model(m), stream(s), pass(p) {}
    int closed = -1;  // the block of the weights that come, until one of them needs it
    void block(int number) override { closed = number; }
    void weight(nn::Weight& w) override {
      if (closed >= 0 && w.refresh_reads_values(pass)) model.open(stream, closed, nn::BlockWeights::Needed::values), closed = -1;
      w.refresh(stream, pass);
    }
  } refresh(*this, stream, pass);
  visit(refresh);
}

}  // namespace octet::models
