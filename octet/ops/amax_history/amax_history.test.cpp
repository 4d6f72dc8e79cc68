#include <gtest/gtest.h>

#include <cfloat>

#include "octet/ops/amax_history/amax_history.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

constexpr float e4m3 = 448, e5m2 = 57344;

// One slot, written out from section 2.1 of the reference on recipes, step by step in its own order.
struct Slot {
  std::vector<float> history;
  float scale = 1;

  void step(float scaled_max, bool most_recent) {
    const std::size_t n = history.size();
    const float last = history[0];
    float amax = 0;
    if (last != 0) {
      std::vector<float> moved = history;
      amax = last;
      for (std::size_t i = 1; i < n; ++i) amax = std::fmax(amax, history[i]);
      for (std::size_t i = 1; i + 2 <= n; ++i) moved[i] = history[i + 1];
      moved[n - 1] = last;
      moved[0] = 0;
      history = moved;
    }
    if (most_recent) amax = last;
    float s = std::isfinite(amax) && amax > 0 ? scaled_max / amax : scale;
    if (std::isinf(s)) s = FLT_MAX;
    scale = s;
  }
};

// Each slot's scale is the first of its 256 bytes.
Tensor places_of(Stream& stream, std::int64_t slots) {
  const Tensor places = stream.empty({slots}, DType::i32);
  for (std::int64_t n = 0; stream.device() == Device::cpu && n < slots; ++n)
    places.as<std::int32_t>()[n] = std::int32_t(n * scale_slot_floats);
  return places;
}

struct Table {
  Stream stream{Device::cpu};
  AmaxHistory args;
  Table(std::int64_t length, std::int64_t slots) {
    args = {.history = stream.zeros({length, slots}, DType::f32),
            .scale = stream.empty({slots, scale_slot_floats}, DType::f32),
            .descale = stream.empty({slots, scale_slot_floats}, DType::f32),
            .places = places_of(stream, slots),
            .format_max = stream.empty({slots}, DType::f32)};
    std::fill_n(args.scale.f32(), args.scale.count(), 1.0f);
    std::fill_n(args.descale.f32(), args.descale.count(), 1.0f);
    for (std::int64_t n = 0; n < slots; ++n) args.format_max.f32()[n] = n % 2 == 0 ? e4m3 : e5m2;
  }
  float& scale(std::int64_t n) { return args.scale.f32()[n * scale_slot_floats]; }
  float& descale(std::int64_t n) { return args.descale.f32()[n * scale_slot_floats]; }
};

// What a step may see: ordinary maxima, none, what is not finite, denormals, the largest and smallest floats.
float injected(std::int64_t slot, std::int64_t step) {
  const RandomWords r = philox(7, std::uint64_t(slot), std::uint64_t(step));
  constexpr float special[] = {0, 0, INFINITY, NAN, 0x1p-149f, 1e-40f, FLT_MAX, 1e-30f};
  return r.w[0] % 4 == 0 ? special[r.w[1] % 8] : std::exp2(20 * uniform(r.w[2]) - 10);
}

using Kernel = void(const AmaxHistory&);

void expect_equal(Table& table, const std::vector<Slot>& wanted, int step) {
  const std::int64_t length = table.args.history.shape[0], slots = table.args.history.shape[1];
  for (std::int64_t n = 0; n < slots; ++n) {
    const Slot& slot = wanted[std::size_t(n)];
    ASSERT_EQ(bits_of(table.scale(n)), bits_of(slot.scale)) << "length " << length << " slot " << n << " step " << step;
    ASSERT_EQ(bits_of(table.descale(n)), bits_of(1.0f / slot.scale));
    for (std::int64_t i = 0; i < length; ++i)
      if (bits_of(table.args.history.f32()[i * slots + n]) != bits_of(slot.history[std::size_t(i)]))
        FAIL() << "length " << length << " slot " << n << " row " << i << " step " << step;
  }
}

// Histories start full, so that long ones lose rows too.
void expect_state_machine(Kernel* kernel, std::int64_t length, std::int64_t slots, int steps, AmaxChoice choice, int margin) {
  Table table(length, slots);
  table.args.choice = choice, table.args.margin = margin;
  std::vector<Slot> wanted(std::size_t(slots), Slot{std::vector<float>(std::size_t(length))});
  for (std::int64_t n = 0; n < slots; ++n)
    for (std::int64_t i = 0; i < length; ++i)
      table.args.history.f32()[i * slots + n] = wanted[std::size_t(n)].history[std::size_t(i)] = injected(n, -i);
  for (int step = 0; step < steps; ++step) {
    for (std::int64_t n = 0; n < slots; ++n) table.args.history.f32()[n] = wanted[std::size_t(n)].history[0] = injected(n, step);
    kernel(table.args);
    for (std::int64_t n = 0; n < slots; ++n)
      wanted[std::size_t(n)].step((n % 2 == 0 ? e4m3 : e5m2) * std::ldexp(1.0f, -margin), choice == AmaxChoice::most_recent);
    expect_equal(table, wanted, step);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(AmaxHistory, EqualsTheReferenceStateMachineBitForBit) {
  for (auto* const kernel : testing::kernels(cpu::v3::advance_amax_history, cpu::v4::advance_amax_history))
    for (const AmaxChoice choice : {AmaxChoice::max, AmaxChoice::most_recent})
      for (const int margin : {0, 2, -3}) {
        for (const std::int64_t length : {1, 2, 3, 16})
          for (const std::int64_t slots : {1, 16, 37}) expect_state_machine(kernel, length, slots, 40, choice, margin);
        expect_state_machine(kernel, 1024, 19, 12, choice, margin);
      }
}

TEST(AmaxHistory, AMaximumLeavesTheWindowAfterLengthSteps) {
  Table t(4, 1);
  std::vector<float> scales;
  for (const float amax : {8.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f}) {
    *t.args.history.f32() = amax;
    advance_amax_history(t.stream, t.args);
    scales.push_back(t.scale(0));
  }
  EXPECT_EQ(scales, (std::vector<float>{56, 56, 56, 56, 448, 448}));
}

TEST(AmaxHistory, GoldenScalesOfOneStepFromAPreviousScaleOfSeven) {
  const std::pair<float, std::uint32_t> golden[] = {
      {0.0f, 0x40e00000},   {1e-45f, 0x7f7fffff},   {1e-30f, 0x75b0b471}, {0x1p-14f, 0x4ae00000},
      {0.001f, 0x48dabfff}, {0.1f, 0x458c0000},     {1.0f, 0x43e00000},   {3.0f, 0x43155555},
      {447.0f, 0x3f80494e}, {448.0f, 0x3f800000},   {449.0f, 0x3f7f6e0a}, {57344.0f, 0x3c000000},
      {1e10f, 0x33406a1f},  {INFINITY, 0x40e00000}, {NAN, 0x40e00000},    {0x1.fep127f, 0x03e0e0e1}};
  for (const auto& [amax, bits] : golden) {
    Table t(16, 1);
    t.scale(0) = 7;
    *t.args.history.f32() = amax;
    advance_amax_history(t.stream, t.args);
    EXPECT_EQ(bits_of(t.scale(0)), bits) << amax;
  }
}

TEST(AmaxHistory, ASkippedStepClearsTheCurrentRowAndNothingElse) {
  for (const std::int64_t length : {1, 2, 16}) {
    Table t(length, 37);
    t.args.skip = testing::tensor_of(t.stream, {1}, {1});
    for (std::int64_t i = 0; i < t.args.history.count(); ++i) t.args.history.f32()[i] = i < 37 && i % 3 == 0 ? NAN : float(i + 1);
    for (std::int64_t n = 0; n < 37; ++n) t.scale(n) = float(n + 2), t.descale(n) = float(n + 5);
    const auto scale = testing::bytes(t.args.scale), descale = testing::bytes(t.args.descale);
    const auto older = testing::bytes(t.args.history.rows(1, length - 1));
    advance_amax_history(t.stream, t.args);
    EXPECT_EQ(testing::values(t.args.history.rows(0, 1)), std::vector<double>(37, 0.0));
    EXPECT_EQ(testing::bytes(t.args.history.rows(1, length - 1)), older);
    EXPECT_EQ(testing::bytes(t.args.scale), scale);
    EXPECT_EQ(testing::bytes(t.args.descale), descale);
    *t.args.skip.f32() = 0;
    t.args.history.f32()[1] = 4;
    advance_amax_history(t.stream, t.args);
    EXPECT_NE(testing::bytes(t.args.scale), scale);
  }
}

TEST(AmaxHistory, OfAFewColumnsLeavesTheOthersAlone) {
  for (const float skip : {0.0f, 1.0f}) {
    Table few(4, 19), all(4, 19 + 5 + 30);
    all.args.first = 5, all.args.scale = few.args.scale, all.args.descale = few.args.descale, all.args.places = few.args.places,
    all.args.format_max = few.args.format_max;
    Table alone(4, 19);
    const auto column = [](std::int64_t n) { return n < 5 || n >= 24 ? -1 : n - 5; };
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t n = 0; n < 54; ++n) {
        const float value = all.args.history.f32()[i * 54 + n] = injected(n, i);
        if (column(n) >= 0) alone.args.history.f32()[i * 19 + column(n)] = value;
      }
    const std::vector<float> before(all.args.history.f32(), all.args.history.f32() + all.args.history.count());
    for (Table* t : {&all, &alone}) t->args.skip = testing::tensor_of(t->stream, {skip}, {1}), advance_amax_history(t->stream, t->args);
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t n = 0; n < 54; ++n) {
        const float wanted = column(n) >= 0 ? alone.args.history.f32()[i * 19 + column(n)] : before[std::size_t(i * 54 + n)];
        EXPECT_EQ(bits_of(all.args.history.f32()[i * 54 + n]), bits_of(wanted)) << i << " " << n << " skip " << skip;
      }
    for (std::int64_t n = 0; n < 19; ++n) EXPECT_EQ(bits_of(few.scale(n)), bits_of(alone.scale(n))) << n;
  }
  Table narrow(2, 3);
  narrow.args.first = 1;
  EXPECT_THROW(advance_amax_history(narrow.stream, narrow.args), ContractError);
}

TEST(AmaxHistory, OnlyTheFirstFloatOfASlotIsWritten) {
  Table t(2, 3);
  for (std::int64_t n = 0; n < 3; ++n) t.args.history.f32()[n] = 2;
  advance_amax_history(t.stream, t.args);
  for (std::int64_t i = 0; i < t.args.scale.count(); ++i) {
    if (i % scale_slot_floats == 0) continue;
    EXPECT_EQ(t.args.scale.f32()[i], 1);
    EXPECT_EQ(t.args.descale.f32()[i], 1);
  }
}

TEST(AmaxHistory, DryRunNeedsTheSameMemory) {
  for (const std::int64_t slots : {0, 1, 37})
    testing::expect_dry_run_agrees([slots](Stream& s) {
      const auto table = [&] { return s.zeros({slots, scale_slot_floats}, DType::f32); };
      advance_amax_history(s, {.history = s.zeros({3, slots}, DType::f32),
                               .scale = table(),
                               .descale = table(),
                               .places = places_of(s, slots),
                               .format_max = s.zeros({slots}, DType::f32)});
    });
}

TEST(AmaxHistory, ScalesOfSeveralSlotsMayBeNeighbours) {
  Table apart(4, 7), together(4, 7);
  for (std::int32_t n = 2; n < 6; ++n) together.args.places.as<std::int32_t>()[n] = 2 * std::int32_t(scale_slot_floats) + n - 2;
  for (int step = 0; step < 3; ++step) {
    for (Table* t : {&apart, &together}) {
      for (std::int64_t n = 0; n < 7; ++n) t->args.history.f32()[n] = injected(n, step);
      advance_amax_history(t->stream, t->args);
    }
    for (std::int64_t n = 0; n < 7; ++n) {
      const std::int32_t place = together.args.places.as<std::int32_t>()[n];
      EXPECT_EQ(bits_of(together.args.scale.f32()[place]), bits_of(apart.scale(n))) << n;
      EXPECT_EQ(bits_of(together.args.descale.f32()[place]), bits_of(apart.descale(n))) << n;
    }
  }
}

TEST(AmaxHistory, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor history = s.empty({3, 5}, DType::f32), table = s.empty({5, 64}, DType::f32), maxima = s.empty({5}, DType::f32),
               places = s.empty({5}, DType::i32);
  EXPECT_THROW(advance_amax_history(s, {.history = maxima, .scale = table, .descale = table, .places = places, .format_max = maxima}),
               ContractError);
  EXPECT_THROW(advance_amax_history(s, {.history = history, .scale = maxima, .descale = table, .places = places, .format_max = maxima}),
               ContractError);
  EXPECT_THROW(advance_amax_history(s, {.history = history, .scale = table, .descale = table, .places = places, .format_max = history}),
               ContractError);
  EXPECT_THROW(advance_amax_history(
                   s, {.history = history, .scale = table, .descale = table, .places = places, .format_max = maxima, .skip = maxima}),
               ContractError);
  EXPECT_THROW(
      advance_amax_history(s, {.history = history, .scale = table, .descale = table, .places = places, .format_max = maxima, .margin = 65}),
      ContractError);
}

}  // namespace
}  // namespace octet::ops
