#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "octet/numerics/formats.hpp"
#include "octet/numerics/math.hpp"
#include "tests/testing/code_table.hpp"
#include "tests/testing/floats.hpp"

// Every formula on a vector gives, lane by lane, the bits of the same formula on a float: with the machine's plain instructions, with
// AVX2 and with AVX-512. The scalar ones are proved in formats.test.cpp and math.test.cpp.

namespace octet {
namespace {

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

const std::vector<float>& inputs() {
  static const std::vector<float> values = [] {
    std::vector<float> out;
    for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 16381) out.push_back(float_of(std::uint32_t(bits)));
    for (const auto* table : {&testing::CodeTable::e4m3(), &testing::CodeTable::e5m2()})
      for (const float mark : table->marks())
        for (const std::uint32_t d : {0u, 1u, 2u}) out.push_back(float_of(bits_of(mark) + d - 1)), out.push_back(-out.back());
    while (out.size() % 16 != 0) out.push_back(0);
    return out;
  }();
  return values;
}

struct EncodeE4M3 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return encode_lanes<E4M3>(x);
  }
};
struct EncodeE5M2 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return encode_lanes<E5M2>(x);
  }
};
struct DecodeE4M3 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return decode_lanes<E4M3, V>(IntOf<V>(int_of(x) >> 18));
  }
};
struct DecodeE5M2 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return decode_lanes<E5M2, V>(IntOf<V>(int_of(x) >> 18));
  }
};
struct EncodeBf16 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return IntOf<V>(encode_bf16_lanes(x) & 0xFFFF);
  }
};
struct RoundToBf16 {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return round_to_bf16(x);
  }
};
struct Magnitudes {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return larger(magnitude(x), smaller(x, splat<V>(3.0f)));
  }
};
struct Exp {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::exp(x);
  }
};
struct Log {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::log(x);
  }
};
struct Tanh {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::tanh(x);
  }
};
struct Sin {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::sin(x);
  }
};
struct Cos {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::cos(x);
  }
};
struct Sqrt {
  template <class V>
  OCTET_HD auto operator()(V x) const {
    return math::sqrt(x);
  }
};

template <class Formula, class V>
OCTET_HD void evaluate(const float* in, std::uint32_t* out) {
  for (int i = 0; i < 16; i += lanes_of<V>) {
    V x;
    std::memcpy(&x, in + i, sizeof(V));
    const auto y = Formula{}(x);
    static_assert(sizeof(y) == sizeof(V));
    std::memcpy(out + i, &y, sizeof(V));
  }
}
template <class Formula, class V>
void plain(const float* in, std::uint32_t* out) {
  evaluate<Formula, V>(in, out);
}
template <class Formula, class V>
[[gnu::target("avx2")]] void avx2(const float* in, std::uint32_t* out) {
  evaluate<Formula, V>(in, out);
}
template <class Formula, class V>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] void avx512(const float* in, std::uint32_t* out) {
  evaluate<Formula, V>(in, out);
}

// A NaN is a NaN: which operand's payload survives is the machine's choice.
bool same(std::uint32_t a, std::uint32_t b) { return a == b || ((a & 0x7FFFFFFFu) > 0x7F800000u && (b & 0x7FFFFFFFu) > 0x7F800000u); }

template <class Formula>
void expect_equal(void (*vectors)(const float*, std::uint32_t*), const char* formula) {
  for (std::size_t i = 0; i < inputs().size(); i += 16) {
    std::uint32_t expected[16], got[16];
    plain<Formula, float>(inputs().data() + i, expected);
    vectors(inputs().data() + i, got);
    for (int k = 0; k < 16; ++k) ASSERT_TRUE(same(got[k], expected[k])) << formula << " of " << inputs()[i + std::size_t(k)];
  }
}

// One test per width rather than one per formula and width: each costs the compiler a class.
template <class Each>
void for_every_formula(Each each) {
  each(EncodeE4M3{}, "encode E4M3"), each(EncodeE5M2{}, "encode E5M2");
  each(DecodeE4M3{}, "decode E4M3"), each(DecodeE5M2{}, "decode E5M2");
  each(EncodeBf16{}, "encode BF16"), each(RoundToBf16{}, "round to BF16"), each(Magnitudes{}, "magnitude, larger, smaller");
  each(Exp{}, "exp"), each(Log{}, "log"), each(Tanh{}, "tanh"), each(Sin{}, "sin"), each(Cos{}, "cos"), each(Sqrt{}, "sqrt");
}

TEST(Lanes, VectorsOfFourGiveTheBitsOfTheFloat) {
  for_every_formula([]<class Formula>(Formula, const char* name) { expect_equal<Formula>(plain<Formula, Four>, name); });
}

TEST(Lanes, VectorsOfEightWithAvx2GiveTheBitsOfTheFloat) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  for_every_formula([]<class Formula>(Formula, const char* name) { expect_equal<Formula>(avx2<Formula, Eight>, name); });
}

TEST(Lanes, VectorsOfSixteenWithAvx512GiveTheBitsOfTheFloat) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq")) GTEST_SKIP() << "this machine has no AVX-512";
  for_every_formula([]<class Formula>(Formula, const char* name) { expect_equal<Formula>(avx512<Formula, Sixteen>, name); });
}

}  // namespace
}  // namespace octet
