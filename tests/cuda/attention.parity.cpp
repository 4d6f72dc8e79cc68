#include "octet/ops/attention/attention.hpp"
#include "octet/ops/attention/attention.testing.hpp"
#include "octet/ops/columns/columns.hpp"
#include "tests/cuda/parity.hpp"
#include "tests/testing/rounded.hpp"

// Attention forward and backward. The bounds of FP32 arithmetic are those of the CPU's own tests, twice: for either side. cuDNN multiplies
// 16-bit values by tensor cores, and rounds its operands to their type: p before p v and p' do, ds before ds k and ds' q; and it takes
// exponentials and sums of its own. That adds, with u = 2^-8 for bf16, 2^-11 for f16, and for f16, whose small numbers are rounded to a
// multiple of 2^-24, half of that to each |p| u and |ds| u:
//   o:  2 u sum p |v|     dv: 2 u sum p |do|     dq, dk: 2 u sum |ds| |k|, |ds| |q|
// A gradient dk or dv of grouped heads is rounded to 16 bits for every query head before those are added: u of each.

namespace octet::parity {
namespace {

using ops::attention_reference::backward, ops::attention_reference::each_head, ops::attention_reference::forward,
    ops::attention_reference::Head;
using ops::attention_reference::Product, ops::attention_reference::product;
using Problem = ops::attention_reference::Case;
using testing::gaussian, testing::unit_bf16, testing::unit_f16, testing::unit_f32;

std::vector<double> values(const std::vector<float>& x, DType dtype) {
  std::vector<double> out;
  for (const float v : x) out.push_back(double(testing::rounded(v, dtype)));
  return out;
}

// The error from rounding p and ds to 16 bits, as above.
struct Rounding {
  std::vector<double> o, dqkv;
};
Rounding rounding(const Problem& c, const std::vector<double>& qkv, const std::vector<double>& d_o, const std::vector<double>& o,
                  const std::vector<double>& lse, DType dtype) {
  const std::int64_t d = c.heads.head_dim, dv = c.heads.value_dim();
  const bool narrow = dtype == DType::f16;
  const double scale = ops::attention_reference::scale_of(c.heads), u = 2 * (narrow ? unit_f16 : unit_bf16),
               least = narrow ? 2 * 0x1p-25 : 0;
  Rounding r{std::vector<double>(o.size()), std::vector<double>(qkv.size())};
  each_head(c, [&](const Head& h) {
    for (std::int64_t i = 0; i < c.heads.sequence; ++i) {
      const Product delta = product(dv, d_o, h.out(i), o, h.out(i));
      for (std::int64_t j = h.first_key(i); j <= i; ++j) {
        const double p = std::exp(product(d, qkv, h.query(i), qkv, h.key(j)).sum * scale - lse[h.lse(i)]);
        const Product dp = product(dv, d_o, h.out(i), qkv, h.value(j));
        // delta is made of an o that is rounded to bf16, which moves ds too.
        const double ds = (p * std::fabs(dp.sum - delta.sum) + p * delta.size) * scale;
        const double of_p = u * p + least, of_ds = u * ds + least;
        for (std::size_t at = 0; at < std::size_t(dv); ++at) {
          r.o[h.out(i) + at] += of_p * std::fabs(qkv[h.value(j) + at]);
          r.dqkv[h.value(j) + at] += 2 * of_p * std::fabs(d_o[h.out(i) + at]);
        }
        for (std::size_t at = 0; at < std::size_t(d); ++at) {
          r.dqkv[h.query(i) + at] += of_ds * std::fabs(qkv[h.key(j) + at]);
          r.dqkv[h.key(j) + at] += 2 * of_ds * std::fabs(qkv[h.query(i) + at]);
        }
      }
    }
  });
  return r;
}

// |gpu - cpu| of every element of whole sequences.
struct Bounds {
  std::vector<double> o, dqkv;
};
Bounds bounds_of(const Problem& c, const std::vector<float>& qkv_values, const std::vector<float>& do_values, DType dtype) {
  const std::vector<double> q = values(qkv_values, dtype), g = values(do_values, dtype);
  const auto f = forward(c, q);
  const auto b = backward(c, q, g, f.o, f.lse);
  Rounding r = rounding(c, q, g, f.o, f.lse, dtype);
  if (dtype == DType::f32) {  // no rounding to bf16; but o, with its own error, goes into delta
    for (double& x : r.o) x = 0;
    for (double& x : r.dqkv) x *= double(c.heads.sequence + c.heads.head_dim) * unit_f32 / unit_bf16;
  }
  for (std::size_t i = 0; i < r.o.size(); ++i) r.o[i] += 2 * f.o_bound[i];
  for (std::size_t i = 0; i < r.dqkv.size(); ++i) r.dqkv[i] += 2 * b.bound[i];
  return {std::move(r.o), std::move(r.dqkv)};
}
Nearness within(std::vector<double> bound) {
  return {.bound = [bound = std::move(bound)](std::int64_t i) { return bound[std::size_t(i)]; }};
}

void run(Side& side, const Problem& c, DType dtype) {
  const std::int64_t T = c.tokens(), width = c.heads.out_columns(), columns = c.heads.columns();
  const std::vector<float> qkv_values = gaussian(std::size_t(T * columns), 1), do_values = gaussian(std::size_t(T * width), 2);
  const Tensor qkv = side.from(qkv_values, {T, columns}, dtype), d_o = side.from(do_values, {T, width}, dtype),
               o = side.poisoned({T, width}, dtype), lse = side.poisoned({c.heads.heads, T}, DType::f32),
               usual = side.poisoned({T, columns}, dtype), same = side.poisoned({T, columns}, dtype),
               starts = c.starts.empty() ? Tensor{} : side.raw(c.starts, {T});
  ops::attention_forward(side.stream(), {.qkv = qkv, .o = o, .lse = lse, .heads = c.heads, .document_starts = starts});
  for (const bool deterministic : {false, true})
    ops::attention_backward(side.stream(), {.d_o = d_o,
                                            .o = o,
                                            .qkv = qkv,
                                            .lse = lse,
                                            .dqkv = deterministic ? same : usual,
                                            .heads = c.heads,
                                            .document_starts = starts,
                                            .deterministic = deterministic});
  Nearness of_o, of_dqkv;
  if (side.stream().device() == Device::cpu) {  // bounds are made once: that takes longer than the op
    Bounds bounds = bounds_of(c, qkv_values, do_values, dtype);
    of_o = within(std::move(bounds.o)), of_dqkv = within(std::move(bounds.dqkv));
  }
  side.result("o", o, of_o);
  side.result("dqkv", usual, of_dqkv);
  side.result("dqkv, deterministic", same, of_dqkv);
}

// Columns [first, first + n) of rows `tokens` of x.
template <class T>
std::vector<T> picked(const std::vector<T>& x, std::int64_t columns, const std::vector<std::int64_t>& tokens, std::int64_t first,
                      std::int64_t n) {
  std::vector<T> out;
  for (const std::int64_t t : tokens)
    for (std::int64_t i = 0; i < n; ++i) out.push_back(x[std::size_t(t * columns + first + i)]);
  return out;
}

// One member's part of each sequence against keys of whole ones. dkeys has the terms of some queries: the bound of all terms holds.
void run_part(Side& side, const Problem& c, int member, int members, DType dtype) {
  ops::QkvShape part = c.heads;
  part.sequence /= members, part.part = SequencePart::of_member(c.heads.sequence, member, members);
  const std::int64_t T = c.batch * part.sequence, queries = part.heads * part.head_dim, width = part.out_columns(),
                     columns = part.columns(), of_keys = part.key_columns();
  std::vector<std::int64_t> own, all;
  for (std::int64_t t = 0; t < T; ++t) own.push_back(t / part.sequence * part.whole() + part.place(t % part.sequence));
  for (std::int64_t t = 0; t < c.tokens(); ++t) all.push_back(t);
  const std::vector<float> qkv_values = gaussian(std::size_t(c.tokens() * columns), 1),
                           do_values = gaussian(std::size_t(c.tokens() * width), 2);
  const Tensor qkv = side.from(picked(qkv_values, columns, own, 0, columns), {T, columns}, dtype),
               d_o = side.from(picked(do_values, width, own, 0, width), {T, width}, dtype),
               keys = side.from(picked(qkv_values, columns, all, queries, of_keys), {c.tokens(), of_keys}, dtype),
               o = side.poisoned({T, width}, dtype), lse = side.poisoned({part.heads, T}, DType::f32),
               dqkv = side.poisoned({T, columns}, dtype), dkeys = side.poisoned({c.tokens(), of_keys}, dtype),
               dq = side.poisoned({T, queries}, dtype),
               starts = c.starts.empty() ? Tensor{} : side.raw(picked(c.starts, 1, own, 0, 1), {T});
  ops::attention_forward(side.stream(), {.qkv = qkv, .o = o, .lse = lse, .heads = part, .document_starts = starts, .keys = keys});
  ops::attention_backward(
      side.stream(),
      {.d_o = d_o, .o = o, .qkv = qkv, .lse = lse, .dqkv = dqkv, .heads = part, .document_starts = starts, .keys = keys, .dkeys = dkeys});
  ops::copy_columns(side.stream(), {.from = dqkv, .to = dq, .columns = queries});
  Nearness of_o, of_dq, of_dkeys;
  if (side.stream().device() == Device::cpu) {
    const Bounds bounds = bounds_of(c, qkv_values, do_values, dtype);
    of_o = within(picked(bounds.o, width, own, 0, width)), of_dq = within(picked(bounds.dqkv, columns, own, 0, queries));
    of_dkeys = within(picked(bounds.dqkv, columns, all, queries, of_keys));
  }
  side.result("o", o, of_o), side.result("dq", dq, of_dq), side.result("dkeys", dkeys, of_dkeys);
}

// The gradient has the same bits each time.
void run_twice(Side& side, const Problem& c) {
  const std::int64_t T = c.tokens(), width = c.heads.out_columns(), columns = c.heads.columns();
  const Tensor qkv = side.gaussian({T, columns}, 1, DType::bf16), d_o = side.gaussian({T, width}, 2, DType::bf16),
               o = side.poisoned({T, width}, DType::bf16), lse = side.poisoned({c.heads.heads, T}, DType::f32),
               first = side.poisoned({T, columns}, DType::bf16), second = side.poisoned({T, columns}, DType::bf16);
  ops::attention_forward(side.stream(), {.qkv = qkv, .o = o, .lse = lse, .heads = c.heads});
  for (const Tensor& dqkv : {first, second})
    ops::attention_backward(side.stream(),
                            {.d_o = d_o, .o = o, .qkv = qkv, .lse = lse, .dqkv = dqkv, .heads = c.heads, .deterministic = true});
  const HostCopy a(side.stream(), first), b(side.stream(), second);
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < first.count(); ++i) differ += a.as<Bf16>()[i].bits != b.as<Bf16>()[i].bits;
  side.result("bits that differ", side.raw(std::vector<std::int64_t>{differ}, {1}), same_bits());
}

std::vector<Problem> shapes() {
  const auto documents = [](Problem c, std::uint32_t mean) { return ops::attention_reference::with_documents(std::move(c), mean); };
  return {documents({2, {4, 2, 5, 50}}, 9),
          documents({1, {2, 1, 288, 70}}, 20),
          documents({4, {2, 2, 16, 128}}, 30),
          documents({4, {2, 1, 64, 200}}, 25),
          documents({2, {7, 1, 64, 256}}, 400),
          documents({2, {4, 2, 128, 260}}, 1),
          {1, {1, 1, 16, 1}},
          {2, {2, 1, 64, 7}},
          {3, {2, 2, 80, 33}},
          {1, {4, 2, 5, 19}},
          {0, {2, 1, 16, 8}},
          {1, {2, 1, 288, 40}},
          {4, {2, 2, 16, 128}},
          {4, {2, 1, 64, 200}},
          {2, {7, 1, 64, 256}},
          {4, {4, 2, 128, 129}},
          {1, {4, 2, 24, 70, {}, 16, 1.5f}},
          {4, {2, 2, 192, 200, {}, 128, 1.5f}},
          documents({2, {2, 2, 192, 256, {}, 128}}, 90)};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const Problem& c : shapes())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      cases.push_back({format("attention {} {}", dtype, c.text()), [=](Side& side) { run(side, c, dtype); }});
  for (const Problem& c : {Problem{2, {4, 2, 16, 200}}, Problem{2, {4, 2, 64, 512}}, Problem{1, {2, 2, 192, 512, {}, 128}},
                           ops::attention_reference::with_documents({1, {4, 1, 64, 512}}, 90)})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const int member : {0, 1})
        cases.push_back({format("attention of a part, member {}, {} {}", member, dtype, c.text()),
                         [=](Side& side) { run_part(side, c, member, 2, dtype); }});
  for (const Problem& c : {Problem{4, {4, 2, 64, 200}}, Problem{2, {4, 2, 128, 512}}, Problem{2, {2, 2, 192, 512, {}, 128}}})
    cases.push_back({"attention twice " + c.text(), [=](Side& side) { run_twice(side, c); }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
