#include "octet/bench/subject.hpp"

namespace octet::bench {

std::string_view name(Unit u) { return u == Unit::bytes ? "B/s" : u == Unit::flops ? "FLOP/s" : "tokens/s"; }

void add_memory_row(Subject& s, std::vector<Row>& rows, Row row, const Prepare& prepare) {
  row.unit = Unit::bytes;
  row.limit = s.limits.copy_bytes_per_second();
  row.seconds = measure(s.stream, s.effort, prepare);
  rows.push_back(std::move(row));
}

double sink_bytes(const Stream& stream, const ops::Sink& sink) {
  if (!sink.spec.quantizes()) return double(sink.plain.bytes());
  double bytes = 0;
  for (const Quantized* q : {&sink.codes.rows, &sink.codes.cols})
    if (*q && !(q == &sink.codes.cols && sink.codes.one_matrix())) bytes += double(q->codes.bytes()) + double(q->descales.bytes());
  const bool again = stream.target().device == Device::cuda ? sink.waits() : !sink.spec.local(bool(sink.codes.cols));
  return bytes + (sink.plain ? (again ? 2.0 : 1.0) * double(sink.plain.bytes()) : 0.0);
}

}  // namespace octet::bench
