#include <gtest/gtest.h>

#include "octet/scaling/from_data.hpp"
#include "octet/scaling/precision.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::scaling {
namespace {

class Own final : public scaling::ScalesFromData {
 public:
  Own() : ScalesFromData({}, {ScaleRule::quotient, {1, 64}, {1, 64}, "1x64"}) {}
};
std::unique_ptr<Recipe> make_own(const RecipeOptions&) { return std::make_unique<Own>(); }

TEST(Registry, ARegisteredRecipeIsFoundByItsName) {
  const std::size_t before = recipes().size();
  EXPECT_THROW(Precision({.recipe = "own_recipe"}), ConfigError);
  register_recipe({.name = "own_recipe", .summary = "a recipe of a test", .make = make_own, .compared = true, .options = {"format"}});
  EXPECT_EQ(recipes().size(), before + 1);
  EXPECT_EQ(compared_recipes().back(), "own_recipe");
  Precision precision({.recipe = "own_recipe"});
  EXPECT_EQ(precision.plan({.path = "a", .out = 64, .in = 64}).x->spec({}).rows, ScaleBlock({1, 64}));
  EXPECT_EQ(precision.rows().back().why, "recipe own_recipe");
  EXPECT_TRUE(testing::has(testing::error_of<ConfigError>([] { Precision({.recipe = "own_recpie"}); }), "did you mean \"own_recipe\"?"));
  EXPECT_TRUE(testing::has(testing::error_of<ContractError>([] { register_recipe({.name = "own_recipe", .make = make_own}); }),
                           "register_recipe: there is a recipe \"own_recipe\" already"));
  EXPECT_EQ(recipes().size(), before + 1);
}

TEST(Registry, AnIncompleteRecipeIsRefused) {
  EXPECT_THROW(register_recipe({.name = "", .make = make_own}), ContractError);
  EXPECT_THROW(register_recipe({.name = "unmade", .make = nullptr}), ContractError);
}

}  // namespace
}  // namespace octet::scaling
