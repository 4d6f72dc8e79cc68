#include "octet/models/model.hpp"

namespace octet {

void Model::refresh(Stream& stream, const Pass& pass) {
  struct Refresh final : nn::Visitor {
    Stream& stream;
    const Pass& pass;
    Refresh(Stream& s, const Pass& p) : stream(s), pass(p) {}
    void linear(nn::Linear& l) override { l.refresh(stream, pass); }
  } refresh(stream, pass);
  visit(refresh);
}

}  // namespace octet
