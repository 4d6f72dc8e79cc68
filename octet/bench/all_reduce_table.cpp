#include "octet/base/aligned.hpp"
#include "octet/bench/all_reduce.hpp"

namespace octet::bench {
namespace {

std::string micros(double seconds) { return grouped((long long)(seconds * 1e6 + 0.5)); }
std::string percent(double share) { return share == 0 ? "0" : share < 1e-5 ? "<0.001%" : fixed(100 * share, 3) + "%"; }

std::string speed_table(const AllReduceResult& r) {
  TextTable lines{{"tensor", "sum", "median us", "quartiles", "algorithm GB/s", "bus GB/s", "bytes sent per rank"}};
  for (const AllReduceRow& row : r.rows)
    lines.push_back({bytes_text(double(row.bytes)), std::string(name(row.way)), micros(row.seconds.median),
                     micros(row.seconds.low) + "-" + micros(row.seconds.high), fixed(row.algorithm_rate() / 1e9, 3),
                     fixed(row.bus_rate() / 1e9, 3), grouped(row.bytes_sent)});
  return aligned(lines, 2);
}

std::string quality_table(const AllReduceResult& r) {
  TextTable lines{{"values", "sum", "ranks", "signal-to-noise dB", "underflow", "overflow", "mu"}};
  for (const SumQuality& q : r.quality)
    lines.push_back({q.coherent ? "equal" : "independent", std::string(name(q.way)), std::to_string(q.ranks), fixed(q.decibel, 1),
                     percent(q.underflow), percent(q.overflow), q.way == Wire::e4m3_shared ? shortest(float(q.mu)) : ""});
  return aligned(lines, 2);
}

json::Value json_of(const AllReduceRow& r) {
  return json::Object{{"sum", std::string(name(r.way))},
                      {"bytes", r.bytes},
                      {"bytes_sent", r.bytes_sent},
                      {"seconds", r.seconds.median},
                      {"seconds_low", r.seconds.low},
                      {"seconds_high", r.seconds.high},
                      {"algorithm_bytes_per_second", r.algorithm_rate()},
                      {"bus_bytes_per_second", r.bus_rate()}};
}

json::Value json_of(const SumQuality& q) {
  return json::Object{
      {"sum", std::string(name(q.way))}, {"equal_values", q.coherent}, {"ranks", q.ranks}, {"signal_to_noise_db", q.decibel},
      {"underflow", q.underflow},        {"overflow", q.overflow},     {"mu", q.mu}};
}

}  // namespace

std::string table_text(const AllReduceResult& r) {
  const char* const kind = r.backend == "threads" ? "threads of one process" : r.backend == "mpi" ? "processes over MPI" : "GPUs over NCCL";
  std::string out = format("{}; {} ranks, {}\n", r.machine, r.ranks, kind);
  if (!r.rows.empty()) out += "\n" + speed_table(r);
  if (!r.quality.empty()) out += "\n" + quality_table(r);
  return out;
}

json::Value to_json(const AllReduceResult& r) {
  json::Array rows, quality;
  for (const AllReduceRow& row : r.rows) rows.push_back(json_of(row));
  for (const SumQuality& q : r.quality) quality.push_back(json_of(q));
  return json::Object{{"machine", r.machine}, {"backend", r.backend}, {"ranks", r.ranks}, {"rows", rows}, {"quality", quality}};
}

}  // namespace octet::bench
