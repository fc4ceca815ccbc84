/// Files that PyTorch wrote in the layouts of released programs (tests/peers/released_weights.py): imported, they
/// compute what the models in Python computed.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/weights/adaptive_span_export.hpp"
#include "apps/run/weights/adaptive_span_import.hpp"
#include "apps/run/weights/foreign_weights.hpp"
#include "apps/run/weights/import_vocabulary.hpp"
#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/run/weights/transfo_xl_import.hpp"
#include "autograd/tape.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/weights/pickle_bytes.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::released_weights_test {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return fs::path(ENGRAM_SOURCE_DIR) / "tests/golden" / name; }
fs::path released(const std::string& name) { return golden("released/" + name); }

template <class T>
std::vector<T> stored(const SafetensorsFile& file, const std::string& name) {
  const std::span<const std::byte> bytes = file.bytes(file.tensors().at(name));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// ln p of all words after every token of the blocks, which follow each other.
std::vector<double> computed(const fs::path& checkpoint, DType dtype, bool frozen, const SafetensorsFile& expected) {
  Runtime runtime({}, 1);
  TrainedModel trained(checkpoint, CheckpointKind::newest, runtime, dtype);
  const PlacedModel placed = trained.placed();
  const Shape shape = expected.tensors().at("tokens").shape;  // [blocks, B, M]
  const std::vector<std::int32_t> tokens = stored<std::int32_t>(expected, "tokens");
  ModelPast past = frozen ? placed.frozen_past(shape[1], shape[2]) : placed.training_past(shape[1]);
  BlockTensors block;
  std::vector<double> all;
  const auto size = static_cast<std::size_t>(shape[1] * shape[2]);
  for (std::size_t begin = 0; begin < tokens.size(); begin += size)
    runtime.in_step([&](Step& step) {
      const BlockTokens inputs{.inputs = std::span(tokens).subspan(begin, size), .length = shape[2]};
      Tape tape(step, Tape::Mode::inference);
      const TokenBatch batch = block.batch_of(inputs, placed);
      const std::vector<double> part = placed.model.tokens().log_probabilities(placed.model.hidden(tape, batch, past));
      all.insert(all.end(), part.begin(), part.end());
    });
  return all;
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

void check_model(const fs::path& checkpoint, const std::string& name) {
  const SafetensorsFile expected(released(name + ".expected.safetensors"));
  const std::vector<float> narrow = stored<float>(expected, "log_probabilities");
  const std::vector<double> f32(narrow.begin(), narrow.end()), f64 = stored<double>(expected, "exact");
  REQUIRE(f32.size() == 3 * 2 * 5 * 30);
  for (const bool frozen : {false, true}) {
    const double narrow_distance = farthest(computed(checkpoint, DType::f32, frozen, expected), f32);
    const double exact_distance = farthest(computed(checkpoint, DType::f64, frozen, expected), f64);
    CAPTURE(name, frozen, narrow_distance, exact_distance);
    CHECK(narrow_distance < 1e-5);
    CHECK(exact_distance < 1e-10);
  }
}

TEST_CASE("released weights: adaptive spans, and persistent slots with words in clusters") {
  const TemporaryFolder folder;
  const std::vector<std::string> settings{"adapt_span_ramp=4", "block_size=5"};
  const fs::path spans = folder / "spans.engram", slots = folder / "slots.engram";
  const AllAttentionOptions transformer =
      import_adaptive_span({.weights = released("adaptive-span.pt"), .out = spans, .settings = settings}).options;
  CHECK(transformer.memory_mode == MemoryMode::transformer);
  CHECK(transformer.heads == 2);
  CHECK(transformer.inner == 12);
  CHECK(transformer.max_span == 12);
  CHECK(transformer.ramp == 4);
  check_model(spans, "adaptive-span");
  const AllAttentionOptions persistent = import_adaptive_span({.weights = released("all-attention.pt"),
                                                               .out = slots,
                                                               .settings = settings,
                                                               .vocabulary = released("corpus.pt")})
                                             .options;
  CHECK(persistent.memory_mode == MemoryMode::all);
  CHECK(persistent.slots == 3);
  CHECK(persistent.cutoffs == std::vector<std::int64_t>{10, 20});
  CHECK(persistent.tie_tables);
  CHECK(persistent.tie_projections);
  check_model(slots, "all-attention");
  CHECK(read_facts(CheckpointFile(slots)).vocabulary.words()->word(3) == "word2");
}

TEST_CASE("released weights: a whole Transformer-XL says what it is, and has the last cluster first") {
  const TemporaryFolder folder;
  const fs::path out = folder / "xl.engram";
  const TransfoXlImported imported =
      import_transfo_xl({.weights = released("transformer-xl.pt"), .out = out, .vocabulary = released("cache.pt")});
  CHECK(imported.options.memory == 7);
  CHECK(imported.options.clamp == 6);
  CHECK(imported.options.visibility == Visibility::last_memory);
  CHECK(imported.options.memory_start == MemoryStart::empty);
  CHECK(imported.options.cutoffs == std::vector<std::int64_t>{10, 20});
  CHECK(imported.options.untied_projections == std::vector<std::int64_t>{0});
  CHECK(imported.options.dropout == Approx(0.1));
  CHECK(imported.cluster_order.order == ClusterOrder::reversed);
  check_model(out, "transformer-xl");
  // What a setting says comes first.
  CHECK(import_transfo_xl({.weights = released("transformer-xl.pt"), .out = out, .settings = {"mem_len=9"}})
            .options.memory == 9);
}

/// Whether a file of safetensors has the tensors of one of PyTorch, byte for byte.
void check_same_tensors(const fs::path& written, const std::string& name, const std::string& computed_one) {
  const ForeignWeights mine = read_foreign_weights(written), theirs = read_foreign_weights(released(name));
  CHECK(mine.tensors.size() == theirs.tensors.size());
  for (const auto& [tensor, stored] : theirs.tensors) {
    CAPTURE(name, tensor);
    REQUIRE(mine.tensors.contains(tensor));
    const ForeignTensor& own = mine.tensors.at(tensor);
    CHECK(own.shape == stored.shape);
    CHECK(own.kind == stored.kind);
    if (tensor != computed_one) CHECK(first_difference(own, stored) == -1);
  }
}

TEST_CASE("released weights: what was imported is exported as it was") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder / "model.engram", out = folder / "out.safetensors",
                 again = folder / "again.engram";
  for (const char* name : {"adaptive-span.pt", "all-attention.pt"}) {
    CAPTURE(name);
    import_adaptive_span({.weights = released(name), .out = checkpoint});
    export_adaptive_span({.run = checkpoint, .out = out});
    check_same_tensors(out, name, "");
    import_adaptive_span({.weights = out, .out = again});
    CHECK(get_file(again) == get_file(checkpoint));
  }
  import_transfo_xl({.weights = released("transformer-xl.pt"), .out = checkpoint});
  const auto exported = [&](TransfoXlProgram program) {
    return export_transfo_xl({.run = checkpoint, .out = out, .program = program});
  };
  exported(TransfoXlProgram::original);
  check_same_tensors(out, "transformer-xl.pt", "pos_emb.inv_freq");
  // config.json beside it says what the model did.
  const TransfoXlImported back = import_transfo_xl({.weights = out, .out = again});
  CHECK(back.cluster_order.order == ClusterOrder::reversed);
  CHECK(get_file(again) == get_file(checkpoint));
  CHECK_THAT(message_of<UsageError>([&] { exported(TransfoXlProgram::hugging_face); }),
             ContainsSubstring("model.memory_start must be zeros"));
  CHECK_THAT(message_of<UsageError>([&] { export_adaptive_span({.run = checkpoint, .out = out}); }),
             ContainsSubstring("must be of family all_attention, got transformer_xl"));
  import_transfo_xl({.weights = golden("transfo-xl/clusters.safetensors"),
                     .out = checkpoint,
                     .config = golden("transfo-xl/clusters.json")});
  CHECK_THAT(message_of<UsageError>([&] { exported(TransfoXlProgram::original); }),
             ContainsSubstring("model.tie_position_biases must be true") &&
                 ContainsSubstring("model.memory_start must be empty, got zeros") && ContainsSubstring("2 options"));
}

TEST_CASE("released weights: a file of safetensors is one, though its header's length begins as pickles do") {
  const TemporaryFolder folder;
  std::string header = R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  header.resize(0x280, ' ');
  const fs::path path = put_file(folder / "file", bytes_of(std::uint64_t{header.size()}) + header + bytes_of(4.0));
  CHECK(get_file(path).starts_with("\x80\x02"));
  CHECK(read_foreign_weights(path).tensors.contains("w"));
}

TEST_CASE("released weights: the commands") {
  const TemporaryFolder folder;
  const std::string out = (folder / "model.engram").string(), back = (folder / "back.safetensors").string();
  const ProcessResult read = run_engram({"import", "--from", "adaptive-span", released("all-attention.pt").string(),
                                         "--out", out, "--vocab", released("vocab.pkl").string()});
  CHECK(read.exit_code == 0);
  CHECK_THAT(read.out,
             ContainsSubstring(": 42 tensors in f32\n  2 layers of width 16, spans of up to 12 with a ramp of 32\n"
                               "  a vocabulary of 30 words\n"));
  // The ramp is the default, which no tensor tells, and is longer than the span.
  CHECK_THAT(read.err, ContainsSubstring("warning: model.max_span 12 is below model.ramp 32") &&
                           ContainsSubstring("--set adapt_span_ramp=N") && !ContainsSubstring("placeholders"));
  const ProcessResult nameless =
      run_engram({"import", "--from", "adaptive-span", released("all-attention.pt").string(), "--out",
                  (folder / "nameless.engram").string(), "--set", "adapt-span-ramp=4", "block-sz=5"});
  CHECK_THAT(nameless.out, ContainsSubstring("a ramp of 4\n  a vocabulary of 30 placeholders\n"));
  CHECK_THAT(nameless.err,
             ContainsSubstring("symbols are placeholders, <0> to <29>, as it was imported without --vocab") &&
                 !ContainsSubstring("ramp"));
  const ProcessResult ordered = run_engram({"import", "--from", "adaptive-span", released("all-attention.pt").string(),
                                            "--out", out, "--cluster-order", "natural"});
  CHECK(ordered.exit_code != 0);
  CHECK_THAT(ordered.err, ContainsSubstring("--from adaptive-span must come without --cluster-order"));
  const ProcessResult written = run_engram({"export", "--to", "adaptive-span", out, "--out", back, "--json"});
  CHECK(written.exit_code == 0);
  CHECK_THAT(written.out, ContainsSubstring("42"));
  // Under the name of a file of PyTorch nothing is written.
  const ProcessResult misnamed =
      run_engram({"export", "--to", "adaptive-span", out, "--out", (folder / "back.pt").string()});
  CHECK(misnamed.exit_code == 2);
  CHECK_THAT(misnamed.err, ContainsSubstring("must name a file of safetensors") && ContainsSubstring(".safetensors;"));
  CHECK_FALSE(fs::exists(folder / "back.pt"));
  const ProcessResult set =
      run_engram({"export", "--to", "adaptive-span", out, "--out", back, "--set", "model.ramp=3"});
  CHECK_THAT(set.err, ContainsSubstring("must come without --set, got 'model.ramp=3'"));
}

TEST_CASE("released weights: the same tensors in PyTorch's form and as safetensors are the same checkpoint") {
  const TemporaryFolder folder;
  const fs::path config = golden("transfo-xl/clusters.json");
  import_transfo_xl({.weights = released("clusters.bin"), .out = folder / "a", .config = config});
  import_transfo_xl({.weights = golden("transfo-xl/clusters.safetensors"), .out = folder / "b", .config = config});
  CHECK(get_file(folder / "a") == get_file(folder / "b"));
}

TEST_CASE("released weights: the three pickled vocabularies are one") {
  const data::Vocabulary first = read_import_vocabulary(released("vocab.pkl"), 30);
  CHECK(first.words()->word(0) == "<eos>");
  CHECK(first.words()->word(29) == "word28");
  CHECK(first.end_token() == 0);
  for (const char* name : {"cache.pt", "corpus.pt"})
    CHECK(read_import_vocabulary(released(name), 30).hash() == first.hash());
  CHECK_THAT(message_of<UsageError>([] { read_import_vocabulary(released("vocab.pkl"), 31); }),
             ContainsSubstring("must have the 31 tokens of the model, got 30"));
  CHECK_THAT(message_of<FileError>([] { read_import_vocabulary(released("clusters.bin"), 30); }),
             ContainsSubstring("must be a vocabulary with idx2sym"));
}

TEST_CASE("released weights: what does not fit is said, all of it") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, std::vector<std::string> settings = {}) {
    std::string message = message_of<Error>([&] {
      import_adaptive_span({.weights = released(name), .out = folder / "out", .settings = std::move(settings)});
    });
    CHECK_FALSE(fs::exists(folder / "out"));
    return message;
  };
  // Tensors of another program are known by their names.
  CHECK_THAT(refusal("clusters.bin"), ContainsSubstring("this looks like transfo-xl: use --from transfo-xl"));
  CHECK_THAT(refusal("transformer-xl.pt"), ContainsSubstring("looks like transformer-xl: use --from transformer-xl"));
  CHECK_THAT(refusal("vocab.pkl"), ContainsSubstring("must be a model, its state dict"));
  CHECK_THAT(refusal("adaptive-span.pt", {"ramp=3"}),
             ContainsSubstring("must be one of adapt_span_ramp") && ContainsSubstring("--adapt-span-ramp, --block-sz"));
  CHECK_THAT(refusal("adaptive-span.pt", {"block_size=x"}), ContainsSubstring("must be a number, got 'block_size=x'"));
  CHECK_THAT(refusal("adaptive-span.pt", {"adapt_span_ramp=0"}), ContainsSubstring("ramp must be"));
  CHECK_THAT(
      message_of<Error>([&] { import_transfo_xl({.weights = released("adaptive-span.pt"), .out = folder / "out"}); }),
      ContainsSubstring("this looks like adaptive-span: use --from adaptive-span"));
}

TEST_CASE("released weights: a text gets the ids of an imported model, and is measured; a worse guess is said") {
  const TemporaryFolder folder;
  const std::string model = (folder / "model.engram").string(), nameless = (folder / "nameless.engram").string(),
                    data = (folder / "data").string(), other = (folder / "other").string();
  std::string words;
  for (int line = 0; line < 60; ++line)
    words += text("word", line * line % 29, " word", line % 7, " word", line * 5 % 28, "\n");
  const std::string file = put_file(folder / "words.txt", words).string();
  import_adaptive_span({.weights = released("all-attention.pt"),
                        .out = model,
                        .settings = {"adapt_span_ramp=4"},
                        .vocabulary = released("corpus.pt")});
  import_adaptive_span({.weights = released("all-attention.pt"), .out = nameless, .settings = {"adapt_span_ramp=4"}});
  CHECK(run_engram({"prepare", "--kind", "word", "--text", file, "--out", other}).exit_code == 0);
  const ProcessResult prepared = run_engram({"prepare", "--vocabulary-of", model, "--test", file, "--out", data});
  CHECK(prepared.exit_code == 0);
  CHECK_THAT(prepared.out, ContainsSubstring("vocabulary of 30 words; prepared in"));
  CHECK(prepared.err.empty());
  const ProcessResult measured = run_engram({"evaluate", model, "--data", data, "--split", "test", "--exact"});
  CHECK(measured.exit_code == 0);
  CHECK_THAT(measured.err, ContainsSubstring("a guess among all 30 words would cost 3.401197 nats"));
  // Ids of its own are refused, with what gives it the model's.
  CHECK_THAT(run_engram({"evaluate", model, "--data", other}).err, ContainsSubstring("engram prepare --vocabulary-of"));
  CHECK_THAT(run_engram({"evaluate", nameless, "--data", other}).err,
             ContainsSubstring("symbols are placeholders, <0> to <29>"));
  CHECK_THAT(run_engram({"generate", nameless, "--prompt", "word1"}).err,
             ContainsSubstring("symbols are placeholders"));
  CHECK_THAT(run_engram({"prepare", "--vocabulary-of", nameless, "--test", file, "--out", data}).err,
             ContainsSubstring("whose symbols are known"));
  CHECK_THAT(run_engram({"prepare", "--vocabulary-of", model, "--kind", "char", "--test", file, "--out", data}).err,
             ContainsSubstring("--kind must be that of --vocabulary-of, word, got char"));
  CHECK_THAT(run_engram({"prepare", "--vocabulary-of", model, "--min-count", "2", "--test", file, "--out", data}).err,
             ContainsSubstring("got --min-count too"));
  // A key that is none is named before the schedule that is missing; weights of which little fits are warned of.
  const Arguments train{"train",   "--from", nameless, "--data", other, "--out", (folder / "run").string(),
                        "--steps", "1",      "--set"};
  const auto trained = [&](const Arguments& keys) {
    Arguments all = train;
    all.insert(all.end(), keys.begin(), keys.end());
    return run_engram(all);
  };
  CHECK_THAT(trained({"schedule.lr=1"}).err,
             ContainsSubstring("'schedule.lr' is no key, those of [schedule] are rate"));
  const ProcessResult wide =
      trained({"schedule.rate=0.001", "training.batch=2", "training.block=5", "model.width=32", "model.cutoffs=[]"});
  CHECK(wide.exit_code == 0);
  CHECK_THAT(wide.err, ContainsSubstring("warning: most of the model begins anew") &&
                           ContainsSubstring("they fit: model.width (16)") &&
                           ContainsSubstring("warning: no symbol of the data keeps its vector: the model's symbols are "
                                             "placeholders"));
}

}  // namespace
}  // namespace engram::harness::released_weights_test
