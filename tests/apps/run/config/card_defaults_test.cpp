/// What training does on a card where nothing else was asked for.

#include "apps/run/config/card_defaults.hpp"

#include "tests/harness/catch.hpp"

namespace engram::card_defaults_test {
namespace {

RunConfig chosen(const std::set<std::string>& given, DeviceKind device, RunConfig config = {},
                 DType dtype = DType::f32) {
  choose_for_card(config, given, device, dtype);
  return config;
}

bool stores_bf16(const RunConfig& config) { return config.training.activations == ActivationPrecision::bf16; }

TEST_CASE("card defaults: bf16 activations, and validations like training") {
  const RunConfig card = chosen({"training.batch"}, DeviceKind::cuda);
  CHECK(stores_bf16(card));
  CHECK(card.training.validate_as_trained);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::simulated}) {
    CHECK_FALSE(stores_bf16(chosen({}, device)));
    CHECK_FALSE(chosen({}, device).training.validate_as_trained);
  }
}

TEST_CASE("card defaults: what was asked for stays") {
  CHECK_FALSE(stores_bf16(chosen({"training.activations"}, DeviceKind::cuda)));
  CHECK_FALSE(chosen({"training.validate_as_trained"}, DeviceKind::cuda).training.validate_as_trained);
  // --dtype f32 is training.products=f32; --dtype bf16 asks for less than is the default.
  const RunConfig exact = chosen({"training.products"}, DeviceKind::cuda);
  CHECK_FALSE(stores_bf16(exact));
  CHECK_FALSE(exact.training.validate_as_trained);
  RunConfig rounded;
  rounded.training.products = ProductPrecision::bf16;
  CHECK(stores_bf16(chosen({"training.products"}, DeviceKind::cuda, rounded)));
  CHECK_FALSE(stores_bf16(chosen({}, DeviceKind::cuda, {}, DType::f64)));
}

TEST_CASE("card defaults: recurrent models have f32 activations alone") {
  RunConfig recurrent;
  recurrent.model.family = ModelFamily::recurrent;
  CHECK_FALSE(stores_bf16(chosen({}, DeviceKind::cuda, recurrent)));
  CHECK_FALSE(chosen({}, DeviceKind::cuda, recurrent).training.validate_as_trained);
  recurrent.training.products = ProductPrecision::bf16;
  CHECK(chosen({"training.products"}, DeviceKind::cuda, recurrent).training.validate_as_trained);
}

TEST_CASE("card defaults: a card holds more logits at a time, unless that is given") {
  RunConfig recurrent;
  recurrent.model.family = ModelFamily::recurrent;
  const auto memory = [](const RunConfig& config) { return config.model.recurrent.logits_memory; };
  const std::int64_t elsewhere = memory(recurrent);
  CHECK(elsewhere < kCardLogitsMemory);
  CHECK(memory(chosen({"model.width"}, DeviceKind::cuda, recurrent)) == kCardLogitsMemory);
  CHECK(memory(chosen({"model.logits_memory"}, DeviceKind::cuda, recurrent)) == elsewhere);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::simulated})
    CHECK(memory(chosen({}, device, recurrent)) == elsewhere);
  CHECK(memory(chosen({}, DeviceKind::cuda, recurrent, DType::f64)) == elsewhere);
  CHECK(memory(chosen({}, DeviceKind::cuda)) == elsewhere);  // of another family
  // All logits of the papers' models: 64 x 20 tokens, 77,000 words.
  CHECK(std::int64_t{64} * 20 * 77'000 * 4 <= kCardLogitsMemory << 20);
}

}  // namespace
}  // namespace engram::card_defaults_test
