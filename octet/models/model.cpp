#include "octet/models/model.hpp"

namespace octet::models {

void Model::refresh(Stream& stream, const scaling::Pass& pass) {
  struct Refresh final : nn::Visitor {
    Stream& stream;
    const scaling::Pass& pass;
    Refresh(Stream& s, const scaling::Pass& p) : stream(s), pass(p) {}
    void linear(nn::Linear& l) override { l.refresh(stream, pass); }
  } refresh(stream, pass);
  visit(refresh);
}

}  // namespace octet::models
