/// What is refused of the options of recurrent models: [key-value-predict 7].

#include <functional>
#include <limits>

#include "core/error.hpp"
#include "nn/models/recurrent.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/recurrent_variants.hpp"

namespace engram::harness::recurrent_options_test {
namespace {

TEST_CASE("recurrent: all variants of the options are valid", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    CAPTURE(variant.name);
    CHECK_NOTHROW(RecurrentModel(variant.options));
  }
}

TEST_CASE("recurrent: widths that do not divide name the two nearest ones", "[recurrent]") {
  struct Width {
    ReadoutKind readout;
    std::int64_t parts, width;
    std::string n, nearest;
  };
  for (const Width& wrong : {Width{ReadoutKind::key_value, 1, 7, "multiple of 2", "6 and 8"},
                             {ReadoutKind::key_value_predict, 1, 833, "multiple of 3", "831 and 834"},
                             {ReadoutKind::key_value_predict, 1, 2, "multiple of 3", "the nearest is 3"},
                             {ReadoutKind::n_gram, 4, 966, "multiple of 4", "964 and 968"},
                             {ReadoutKind::n_gram, 5, 3, "multiple of 5", "the nearest is 5"}}) {
    RecurrentOptions options = small_recurrent(RecurrentCell::lstm, wrong.readout);
    options.parts = wrong.parts;
    options.width = wrong.width;
    CHECK_THROWS_WITH(RecurrentModel(options), ContainsSubstring("width") && ContainsSubstring(wrong.n) &&
                                                   ContainsSubstring(wrong.nearest) &&
                                                   ContainsSubstring(text("got ", wrong.width)) &&
                                                   ContainsSubstring(std::string(name_of(wrong.readout))));
    CHECK_THROWS_AS(RecurrentModel(options), UsageError);
  }
  RecurrentOptions options = small_recurrent(RecurrentCell::lstm, ReadoutKind::attention);
  options.width = 7;
  CHECK_NOTHROW(RecurrentModel(options));
}

TEST_CASE("recurrent: options out of range are refused by name and value", "[recurrent]") {
  struct Wrong {
    std::string name, value;
    std::function<void(RecurrentOptions&)> set;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Wrong& wrong : std::vector<Wrong>{{"window must be from 1 to 536870911", "got 0",
                                                [](auto& o) { o.window = 0; }},
                                               {"window must be from 1 to 536870911", "got -3",
                                                [](auto& o) { o.window = -3; }},
                                               {"parts must be from 1 to 16777216", "got 0",
                                                [](auto& o) { o.parts = 0; }},
                                               {"decay must be above 0 and at most 1", "got 0",
                                                [](auto& o) { o.decay = 0; }},
                                               {"decay must be above 0 and at most 1", "got 1.5",
                                                [](auto& o) { o.decay = 1.5; }},
                                               {"decay must be", "got nan", [nan](auto& o) { o.decay = nan; }},
                                               {"order must be from 1 to 64", "got 0", [](auto& o) { o.order = 0; }},
                                               {"order must be from 1 to 64", "got 65", [](auto& o) { o.order = 65; }},
                                               {"vocabulary must be from 1 to 2147483647", "got 0",
                                                [](auto& o) { o.vocabulary = 0; }},
                                               {"width must be from 1 to 16777216", "got 0",
                                                [](auto& o) { o.width = 0; }},
                                               {"embedding_width must be", "got -1",
                                                [](auto& o) { o.embedding_width = -1; }},
                                               {"init_range must be from 1.2e-38 to 1e+06", "got 0",
                                                [](auto& o) { o.init_range = 0; }},
                                               {"init_range must be from 1.2e-38", "got inf",
                                                [](auto& o) {
                                                  o.init_range = std::numeric_limits<double>::infinity();
                                                }},
                                               {"logits_memory must be from 1 to 2^40 MiB", "got 0",
                                                [](auto& o) { o.logits_memory = 0; }},
                                               {"layers must be from 1 to 4096", "got 0",
                                                [](auto& o) { o.layers = 0; }},
                                               {"inner_width must be from 0 to 16777216, 0 for width", "got -1",
                                                [](auto& o) { o.inner_width = -1; }},
                                               {"taps must be from 1 to 64", "got 0", [](auto& o) { o.taps = 0; }},
                                               {"inner_taps must be from 0 to 64, 0 for taps", "got 65",
                                                [](auto& o) { o.inner_taps = 65; }},
                                               {"divisor must be from 1", "got 0", [](auto& o) { o.divisor = 0; }},
                                               {"cutoffs must be below the vocabulary of 5", "got 7",
                                                [](auto& o) { o.cutoffs = {7}; }},
                                               {"cutoffs must leave each cluster a width of at least 1", "got 2 / 4",
                                                [](auto& o) { o.cutoffs = {2}; }},
                                               {"embedding_width must be 2 with tie_tables", "got 3",
                                                [](auto& o) { o.tie_tables = true; }},
                                               {"word_dropout must be in [0, 1 - 2^-17)", "got 1",
                                                [](auto& o) { o.word_dropout = 1; }},
                                               {"input_dropout must be in", "got -0.5",
                                                [](auto& o) { o.input_dropout = -0.5; }},
                                               {"layer_dropout must be in",
                                                "got 1", [](auto& o) { o.layer_dropout = 1; }},
                                               {"output_dropout must be in", "got nan",
                                                [nan](auto& o) { o.output_dropout = nan; }},
                                               {"weight_dropout must be in",
                                                "got 2", [](auto& o) { o.weight_dropout = 2; }},
                                               {"output_map must be false with the encoder qrnn", "got true",
                                                [](auto& o) {
                                                  o.output_map = true;
                                                  o.encoder = RecurrentCell::qrnn;
                                                }},
                                               {"output_width must be", "got -1", [](auto& o) { o.output_width = -1; }},
                                               {"output_width must be 0 for the readout key_value_predict", "got 4",
                                                [](auto& o) { o.output_width = 4; }},
                                               {"output_map must be false with the encoder lstm", "got true",
                                                [](auto& o) { o.output_map = true; }},
                                               {"output_map must be false with the readout key_value_predict",
                                                "got true", [](auto& o) {
                                                  o.output_map = true;
                                                  o.encoder = RecurrentCell::rnn;
                                                }}}) {
    CAPTURE(wrong.name, wrong.value);
    RecurrentOptions options = small_recurrent(RecurrentCell::lstm, ReadoutKind::key_value_predict);
    wrong.set(options);
    CHECK_THROWS_WITH(RecurrentModel(options), ContainsSubstring(wrong.name) && ContainsSubstring(wrong.value));
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_options_test
