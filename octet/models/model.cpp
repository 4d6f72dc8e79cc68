#include "octet/models/model.hpp"

namespace octet::models {

void Model::refresh(Stream& stream, const scaling::Pass& pass) {
  struct Refresh final : nn::Visitor {
    Model& model;
    Stream& stream;
    const scaling::Pass& pass;
    Refresh(Model& m, Stream& s, const scaling::Pass& p) : model(m), stream(s), pass(p) {}
    void block(int number) override { model.open(stream, number); }
    void linear(nn::Linear& l) override { l.refresh(stream, pass); }
  } refresh(*this, stream, pass);
  visit(refresh);
}

}  // namespace octet::models
