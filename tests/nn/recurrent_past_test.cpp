/// Streams of a recurrent model that are copied and then go on apart.

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/placed_recurrent.hpp"

namespace engram::harness::recurrent_past_test {
namespace {

TEST_CASE("recurrent past: copied streams go on as the ones that they were copied from", "[recurrent]") {
  using enum ReadoutKind;
  for (const auto& backend : available_backends())
    for (const ReadoutKind readout : {key_value, recurrent_memory, n_gram}) {
      CAPTURE(name_of(readout));
      const RecurrentOptions options = gold_options(RecurrentCell::lstm, readout, readout == n_gram ? 3 : 1);
      PlacedRecurrent placed(options, 2, DType::f32, *backend);
      set_gold_values(placed);
      placed.losses({.inputs = {1, 4, 2, 6, 3, 5}, .targets = {4, 2, 6, 3, 5, 1}, .streams = 2});
      ModelPast copied = placed.model.training_past(*backend, placed.heap, 3, DType::f32);
      const std::vector<std::int64_t> streams{1, 0, 1};
      // Twice: the second time into memory that is there.
      copy_streams(copied, placed.past, streams);
      copy_streams(copied, placed.past, streams);
      CHECK(recurrent_past(*copied[0]).valid() == 3);

      const std::vector<double> own = placed.losses({.inputs = {2, 5, 3, 6}, .targets = {5, 1, 6, 0}, .streams = 2});
      std::swap(placed.past, copied);
      const std::vector<double> of_copies =
          placed.losses({.inputs = {3, 6, 2, 5, 1, 1}, .targets = {6, 0, 5, 1, 2, 3}, .streams = 3});
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(of_copies[i] == Approx(own[2 + i]).epsilon(1e-6));
        CHECK(of_copies[2 + i] == Approx(own[i]).epsilon(1e-6));
      }
    }
}

TEST_CASE("recurrent past: what cannot be copied", "[recurrent]") {
  PlacedRecurrent placed(gold_options(RecurrentCell::lstm, ReadoutKind::key_value), 2);
  ModelPast copied = placed.model.training_past(placed.backend, placed.heap, 1, DType::f64);
  const auto copy = [&](const ModelPast& from, std::vector<std::int64_t> streams) {
    return message_of<Error>([&] { copy_streams(copied, from, streams); });
  };
  CHECK_THAT(copy(placed.past, {2}), ContainsSubstring("in [0, 2), got 2"));
  CHECK_THAT(copy(placed.past, {0, 1}), ContainsSubstring("1 streams must be copied, got 2"));
  CHECK_THAT(copy(placed.model.training_past(placed.backend, placed.heap, 1, DType::f32), {0}),
             ContainsSubstring("of the same model"));
  CHECK_THAT(copy({}, {0}), ContainsSubstring("got 0 parts for 2"));
}

}  // namespace
}  // namespace engram::harness::recurrent_past_test
