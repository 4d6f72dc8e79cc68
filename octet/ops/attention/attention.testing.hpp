#pragma once

// Only for tests: attention from its definition, in double, with bounds on the error of FP32 arithmetic.

#include <string>
#include <vector>

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/attention/attention.math.hpp"
#include "octet/ops/attention/documents.testing.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/lanes.hpp"
#include "tests/testing/testing.hpp"

namespace octet::ops::attention_reference {

using testing::Dual, testing::NumberLane, testing::dot_bound;

struct Case {
  std::int64_t batch;
  QkvShape heads;
  std::vector<std::int32_t> starts = {};  // of documents, per token; empty: all of a sequence is one
  std::int64_t tokens() const { return batch * heads.sequence; }
  std::string text() const {
    return format("B {} H {} Hkv {} d {} dv {} S {}{}", batch, heads.heads, heads.kv_heads, heads.head_dim, heads.value_dim(),
                  heads.sequence, starts.empty() ? "" : " documents");
  }
};
inline Case with_documents(Case c, std::uint32_t mean) {
  c.starts = random_document_starts(c.tokens(), c.heads.sequence, mean);
  return c;
}

// One query head of one sequence in matrices of numbers: the position of its rows.
struct Head {
  const Case& c;
  std::int64_t sequence, head;
  std::int64_t token(std::int64_t i) const { return sequence * c.heads.sequence + i; }
  std::int64_t first_key(std::int64_t i) const { return c.starts.empty() ? 0 : c.starts[std::size_t(token(i))]; }
  std::size_t query(std::int64_t i) const { return std::size_t(token(i) * c.heads.columns() + c.heads.query_column(head)); }
  std::size_t key(std::int64_t i) const { return std::size_t(token(i) * c.heads.columns() + c.heads.key_column(head / c.heads.group())); }
  std::size_t value(std::int64_t i) const {
    return std::size_t(token(i) * c.heads.columns() + c.heads.value_column(head / c.heads.group()));
  }
  std::size_t out(std::int64_t i) const { return std::size_t(token(i) * c.heads.out_columns() + c.heads.out_column(head)); }
  std::size_t lse(std::int64_t i) const { return std::size_t(head * c.tokens() + token(i)); }
};

inline double scale_of(const QkvShape& s) { return double(s.score_factor) / std::sqrt(double(s.head_dim)); }

template <class F>
void each_head(const Case& c, F&& f) {
  for (std::int64_t sequence = 0; sequence < c.batch; ++sequence)
    for (std::int64_t head = 0; head < c.heads.heads; ++head) f(Head{c, sequence, head});
}

// A sum of products and of their magnitudes.
struct Product {
  double sum = 0, size = 0;
};
template <class A, class B>
Product product(std::int64_t n, const A& a, std::size_t at_a, const B& b, std::size_t at_b) {
  Product p;
  for (std::int64_t c = 0; c < n; ++c) {
    const double x = double(a[at_a + std::size_t(c)]) * double(b[at_b + std::size_t(c)]);
    p.sum += x, p.size += std::abs(x);
  }
  return p;
}

struct Forward {
  std::vector<double> o, lse, o_bound, lse_bound;
};
inline Forward forward(const Case& c, const std::vector<double>& qkv) {
  constexpr double u = testing::unit_f32;
  const std::int64_t d = c.heads.head_dim, dv = c.heads.value_dim();
  const double scale = scale_of(c.heads);
  const std::size_t outputs = std::size_t(c.tokens() * c.heads.out_columns()), rows = std::size_t(c.tokens() * c.heads.heads);
  Forward f{std::vector<double>(outputs), std::vector<double>(rows), std::vector<double>(outputs), std::vector<double>(rows)};
  each_head(c, [&](const Head& h) {
    for (std::int64_t i = 0; i < c.heads.sequence; ++i) {
      const double n = double(i + 1);
      std::vector<double> s;
      double most = -INFINITY, score_error = 0, sum = 0, least = INFINITY;
      for (std::int64_t j = h.first_key(i); j <= i; ++j) {
        const Product p = product(d, qkv, h.query(i), qkv, h.key(j));
        s.push_back(p.sum * scale);
        score_error = std::max(score_error, dot_bound(double(d) + 3, u, p.size * scale));  // 3: the scale, its product with q
        most = std::max(most, s.back()), least = std::min(least, s.back());
      }
      for (const double x : s) sum += std::exp(x - most);
      // An exponential is off by its argument's error, (s - most) rounded, and 1 ulp = 2 u; a sum of n adds n u.
      const double exponential = std::expm1(2 * score_error + u * (most - least)) + 2 * u, total = exponential + n * u;
      f.lse[h.lse(i)] = most + std::log(sum);
      f.lse_bound[h.lse(i)] = 1.01 * (score_error + total + 2 * u * std::abs(std::log(sum)) + u * std::abs(f.lse[h.lse(i)]));
      for (std::int64_t x = 0; x < dv; ++x) {
        double value = 0, size = 0;
        for (std::int64_t j = h.first_key(i); j <= i; ++j) {
          const double part = std::exp(s[std::size_t(j - h.first_key(i))] - most) / sum * qkv[h.value(j) + std::size_t(x)];
          value += part, size += std::abs(part);
        }
        f.o[h.out(i) + std::size_t(x)] = value;
        f.o_bound[h.out(i) + std::size_t(x)] = 1.01 * (exponential + total + (n + 3) * u) * size;
      }
    }
  });
  return f;
}

struct Backward {
  std::vector<double> dqkv, bound;
};
inline Backward backward(const Case& c, const std::vector<double>& qkv, const std::vector<double>& d_o, const std::vector<double>& o,
                         const std::vector<double>& lse) {
  constexpr double u = testing::unit_f32;
  const std::int64_t d = c.heads.head_dim, dv = c.heads.value_dim();
  const double scale = scale_of(c.heads), terms = double(c.heads.sequence * c.heads.group() + 3);
  Backward b{std::vector<double>(qkv.size()), std::vector<double>(qkv.size())};
  // dqkv[at] += weight * x, where the weight is off by `error`.
  const auto add = [&](std::size_t at, double weight, double error, double x) {
    b.dqkv[at] += weight * x;
    b.bound[at] += 1.01 * (error * std::abs(x) + terms * u * (std::abs(weight * x) + error * std::abs(x)));
  };
  each_head(c, [&](const Head& h) {
    for (std::int64_t i = 0; i < c.heads.sequence; ++i) {
      const Product delta = product(dv, d_o, h.out(i), o, h.out(i));
      for (std::int64_t j = h.first_key(i); j <= i; ++j) {
        const Product s = product(d, qkv, h.query(i), qkv, h.key(j)), dp = product(dv, d_o, h.out(i), qkv, h.value(j));
        double p = s.sum * scale - lse[h.lse(i)], ds = dp.sum - delta.sum;
        const double p_error = std::expm1(dot_bound(double(d) + 3, u, s.size * scale) + u * std::abs(p)) + 2 * u;
        NumberLane<double> lane;
        p = s.sum * scale, ds = dp.sum;
        attention_backward_row(lane, 1, lse[h.lse(i)], delta.sum, &p, &ds);
        const double ds_error = p * (1 + p_error) * dot_bound(double(dv) + 1, u, dp.size + delta.size) + std::abs(ds) * (p_error + 3 * u);
        for (std::int64_t x = 0; x < d; ++x) {
          add(h.query(i) + std::size_t(x), ds * scale, ds_error * scale, qkv[h.key(j) + std::size_t(x)]);
          add(h.key(j) + std::size_t(x), ds * scale, ds_error * scale, qkv[h.query(i) + std::size_t(x)]);
        }
        for (std::int64_t x = 0; x < dv; ++x) add(h.value(j) + std::size_t(x), p, p_error * p, d_o[h.out(i) + std::size_t(x)]);
      }
    }
  });
  return b;
}

// The derivative of sum d_o * o by element `input` of qkv, by a dual number through the forward's own row.
inline double slope_of_forward(const Case& c, const std::vector<double>& qkv, const std::vector<double>& d_o, std::size_t input) {
  const std::int64_t d = c.heads.head_dim;
  std::vector<Dual> x(qkv.begin(), qkv.end());
  x[input].slope = 1;
  Dual total;
  const NumberLane<Dual> lane;
  each_head(c, [&](const Head& h) {
    for (std::int64_t i = 0; i < c.heads.sequence; ++i) {
      std::vector<Dual> s;
      for (std::int64_t j = h.first_key(i); j <= i; ++j) s.push_back(dot_row(lane, d, &x[h.query(i)], &x[h.key(j)]) * scale_of(c.heads));
      const auto row = exponentials_row(lane, std::int64_t(s.size()), s.data());
      for (std::int64_t j = h.first_key(i); j <= i; ++j)
        total += s[std::size_t(j - h.first_key(i))] / row.sum * dot_row(lane, c.heads.value_dim(), &d_o[h.out(i)], &x[h.value(j)]);
    }
  });
  return total.slope;
}

}  // namespace octet::ops::attention_reference
