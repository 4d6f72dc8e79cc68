#include "octet/train/step/choices.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/tokenizer/byte_tokenizer.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/small_model.testing.hpp"

namespace octet::train {
namespace {

using namespace octet::train::testing;

// The loss goes through the cross-entropy of the head, which shares nothing with this sum but the forward.
TEST(LogLikelihood, IsTheLossOfTheScoredTokens) {
  Engine e(small_engine("llama", "fp32"), Device::cpu, machine::machine_target(Device::cpu));
  e.parameters.initialize(e.stream, 3);
  e.quantize_weights({});
  data::Batch whole = random_batch(1, 21, 61, 5);
  std::copy(whole.inputs.begin() + 1, whole.inputs.end(), whole.targets.begin());
  std::vector<std::int32_t> ids(whole.inputs.begin(), whole.inputs.end());
  ids.push_back(whole.targets.back());
  for (const std::int64_t scored : {1, 4, 21}) {
    data::Batch batch = whole;
    std::fill(batch.targets.begin(), batch.targets.end() - scored, -1);
    const Evaluation wanted = evaluate_batch(e, batch);
    ASSERT_EQ(wanted.tokens, scored);
    EXPECT_NEAR(log_likelihood(e, ids, scored), -wanted.loss * double(scored), 1e-4 * double(scored)) << scored;
  }
}

TEST(EncodeChoices, BlanksAtTheEndOfTheContextBelongToTheChoice) {
  const tokenizer::ByteTokenizer bytes;
  const auto ids_of = [](std::string_view text) { return std::vector<std::int32_t>(text.begin(), text.end()); };
  const auto encoded = encode_choices(bytes, {.context = "ab ", .choices = {"c", "de"}}, 100);
  EXPECT_EQ(encoded[0].ids, ids_of("ab  c"));
  EXPECT_EQ(encoded[0].scored, 3);
  EXPECT_EQ(encoded[1].scored, 4);
  const auto shortened = encode_choices(bytes, {.context = "abcdef", .choices = {"xy", "z"}}, 4);
  EXPECT_EQ(shortened[0].ids, ids_of("ef xy")) << "4 inputs and the last target";
  EXPECT_EQ(encode_choices(bytes, {.context = "", .choices = {"x", "y"}}, 9)[0].ids, (std::vector<std::int32_t>{256, ' ', 'x'}));
  EXPECT_THROW(encode_choices(bytes, {.context = "a", .choices = {"xyzxyz", "y"}}, 4), DataError);
}

TEST(ChoiceCounts, CountByTheLikeliestAndByTheLikeliestPerCharacter) {
  ChoiceCounts counts;
  const auto add = [&](const data::MultipleChoice& q, std::vector<double> sums) { counts.add(q, Chosen(q, sums)); };
  add({.context = "", .choices = {"éé", "abcdefgh"}, .answer = 1}, {-4, -8});  // -2 against -1 per character
  add({.context = "", .choices = {"a", "b"}, .answer = 0}, {-1, -1});          // the first of equal ones
  add({.context = "", .choices = {"a", "bc"}, .answer = 0}, {-1, -1.5});
  EXPECT_EQ(counts.questions, 3);
  EXPECT_EQ(counts.right, 2);
  EXPECT_EQ(counts.right_per_character, 2);
  EXPECT_NEAR(standard_error(2.0 / 3, 3), std::sqrt(2.0 / 9 / 2), 1e-15);
  EXPECT_EQ(standard_error(1, 1), 0);
}

}  // namespace
}  // namespace octet::train
