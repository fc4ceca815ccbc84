/// Configurations are TOML 1.0: every form that it has is read, and what is none is refused with its place.

#include "apps/run/config/config_text.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/apps/run/config/smallest_config.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::config_toml_test {
namespace {

using harness::message_of;
using harness::parse;

/// What is read, an assignment in a line: section.key=value, with quotes around strings.
std::string read(const std::string& toml) {
  std::string all;
  for (const Assignment& one : read_assignments(toml, "run.toml")) all += one.full_name() + "=" + one.written() + "\n";
  return all;
}

TEST_CASE("every form of TOML is read") {
  // Numbers: integers in decimal digits, others as they are written.
  CHECK(read("[training]\nbatch = 1_000\nblock = 0x1F # hex\nsplit = 0b101\nseed = +7\nextension = 0o17\n") ==
        "training.batch=1000\ntraining.block=31\ntraining.split=5\ntraining.seed=7\ntraining.extension=15\n");
  CHECK(read("[training]\nspan_loss = 6.626_070e-34\nseed = 9223372036854775807") ==
        "training.span_loss=6.626070e-34\ntraining.seed=9223372036854775807\n");
  CHECK(parse("[training]\nspan_loss = 1_0.000_000_000_000_000_2\n").training.span_loss == 10.0000000000000002);
  CHECK(parse("[training]\nspan_loss = 5e-324\n").training.span_loss == 5e-324);
  // One may be beyond 64 bits with a sign: the largest seeds are, which runs write down.
  CHECK(parse("[training]\nseed = 18446744073709551615 # all bits\nbatch = 3\n").training.seed == ~std::uint64_t{0});
  CHECK(read("x = [1, 18_446_744_073_709_551_615, 3]") == "x=[1, 18446744073709551615, 3]\n");
  // Lists over several lines, with comments and a last comma.
  CHECK(read("[model]\ncutoffs = [ # of words\n  5_000, # one\n  0x10\n  ,\n]\n") == "model.cutoffs=[5000, 16]\n");
  CHECK(parse("[model]\ncutoffs = [\n5,\n7,\n]\n").model.all_attention.cutoffs == std::vector<std::int64_t>{5, 7});
  // Keys: dotted, in quotes, in tables of one line; in the order of the text.
  CHECK(read("training.batch = 3\nmodel.width = 8\n training . 'block' = 4\nmodel.\"heads\" = 2\n") ==
        "training.batch=3\nmodel.width=8\ntraining.block=4\nmodel.heads=2\n");
  CHECK(read("model = { width = 8, pad = 'mask', cutoffs = [1] }\nschedule = {}\n[training]\nb = 1\na = 2\n") ==
        "model.width=8\nmodel.pad=\"mask\"\nmodel.cutoffs=[1]\ntraining.b=1\ntraining.a=2\n");
  CHECK(read("['model']\n\"wid\\u0074h\" = 8\n\"a.b\" = 1\n") == "model.width=8\nmodel.\"a.b\"=1\n");
  // Strings, which are no numbers; a # and a = in them are theirs.
  CHECK(read("[model]\na = \"\"\"\nma\\\n  sk\"\"\"\nb = '''x'''\nc = \"\\u0041\\t#=\"\nd = '8'\ne = '\\t'\n") ==
        "model.a=\"mask\"\nmodel.b=\"x\"\nmodel.c=\"A\t#=\"\nmodel.d=\"8\"\nmodel.e=\"\\t\"\n");
  CHECK(parse("[model]\npad = \"\"\"\nmask\"\"\" # that's it\n").model.all_attention.pad == Pad::mask);
  // Files of other systems.
  CHECK(read("\xef\xbb\xbf[model]\r\nwidth = 8\r\n\r\npad = \"mask\" # \xc3\xbc\r\n") ==
        "model.width=8\nmodel.pad=\"mask\"\n");
  CHECK(read("") + read("\n") + read("# nothing\n[model]\n") == "");
}

/// A text that is refused, what is said of it, and where it is.
struct BrokenToml {
  std::string toml, said, place;
};

TEST_CASE("what is no TOML is refused with its line, column and file") {
  const std::string no_toml = "config: the text must be TOML, got ";
  const std::vector<BrokenToml> table{
      {"[training]\nbatch 8\n", no_toml + "'batch 8' (", "2, column 7"},
      {"[training]\n  batch = \n", no_toml + "'batch =' (", "2, column 11"},
      {"[training]\nbatch = 8 9\n", no_toml + "'batch = 8 9' (", "2, column 11"},
      {"[training\nbatch = 8\n", no_toml + "'[training' (", "1, column 10"},
      {"[[model]\n", no_toml + "'[[model]' (", "1, column 9"},
      {"x", no_toml + "'x' (", "1, column 2"},
      {"x = [1,\n2, 3", no_toml + "'2, 3' (", "2, column 5"},
      {"x = { y = 1,\n", no_toml + "'x = { y = 1,' (", "1, column 13"},
      {"x = \"y\n", no_toml + "'x = \"y' (", "1, column 7"},
      {"x = 1__0\n", no_toml + "'x = 1__0' (", "1, column 7"},
      {"x = 010\n", no_toml + "'x = 010' (", "1, column 8"},
      {"x = \"\\e\"\n", no_toml + "'x = \"\\e\"' (", "1, column 7"},
      {"x = 1 # \x01\n", no_toml + "'x = 1 # \\x01' (", "1, column 9"},
      {"[x]\r\ny = 1\rz = 2\n", no_toml + "'y = 1\\x0dz = 2' (", "2, column 7"},
      {"\xef\xbb\xbf = 1\n", no_toml + "'= 1' (", "1, column 2"},
      // Columns are characters.
      {"\"\xc3\xbc\xc3\xbc\" = !\n", no_toml + "'\"\xc3\xbc\xc3\xbc\" = !' (", "1, column 8"},
      // Of two integers that are too large one is no TOML for the parser.
      {"x = 18446744073709551615\ny = 18446744073709551615\n", no_toml + "'y = 18446744073709551615' (",
       "2, column 25"},
      {"model = { width = 8 }\nmodel.heads = 2\n", no_toml + "'model.heads = 2' (", "2, column 1"}};
  for (const BrokenToml& broken : table) {
    CAPTURE(broken.toml);
    CHECK_THAT(message_of<UsageError>([&] { read_assignments(broken.toml, "'run.toml'"); }),
               StartsWith(broken.said) && EndsWith(")\n  in 'run.toml', line " + broken.place));
  }
  CHECK(message_of<UsageError>([] { read_assignments("[x]\n\xc3\xbc \xff\n", "'run.toml'"); }) ==
        "config: the text must be UTF-8, got '\xc3\xbc \\xff'\n  in 'run.toml', line 2, column 3");
  for (const char* word : {"mask", "True", "tru"}) {
    CAPTURE(word);
    CHECK_THAT(message_of<UsageError>([&] { read_assignments(text("[model]\npad = ", word, " # word\n"), "x"); }),
               ContainsSubstring("in x, line 2, column ") && ContainsSubstring("names are written in quotes"));
  }
}

TEST_CASE("keys and sections that a configuration cannot have are refused with their line, column and file") {
  const std::string once = " must be given once, got it again", no_value = " must have a value, got a table of keys";
  const std::vector<BrokenToml> table{
      {"[training]\nbatch = 8\n batch = 9\n", "config: 'training.batch'" + once, "3, column 10"},
      {"[training]\nx = [\n8]\n[model]\nwidth = [1,\n2]\nwidth = 3", "config: 'model.width'" + once, "7, column 9"},
      {"model.width = 8\nmodel.width = 9\n", "config: 'model.width'" + once, "2, column 15"},
      {"model = { width = 8, width = 9 }\n", "config: 'width'" + once, "1, column 30"},
      {"[model]\n[training]\n [model] # again\n", "config: [model]" + once, "3, column 2"},
      {"model = 3\n[model]\n", "config: [model]" + once, "2, column 1"},
      {"[model]\nadaptive_span = true\nspan = 'fixed'\n", "config: 'model.span'" + once, "3, column 1"},
      {"[model]\nwidth = { a = 1 }\n", "config: 'model.width'" + no_value, "2, column 1"},
      {"[model]\nwidth.a = 1\n", "config: 'model.width'" + no_value, "2, column 1"},
      {"[model]\n[model.sub]\n", "config: 'model.sub'" + no_value, "2, column 8"},
      {"model = 3\n", "config: [model] must be a section of keys, got '3'", "1, column 1"},
      {"[[model]]\nwidth = 3\n", "config: [model] must be a section of keys, got '[{...}]'", "1, column 3"},
      {"\n[ modle ]\n", "config: [modle] is no section, the nearest one is [model]", "2, column 3"},
      {"[\"mo del\"]\n", "config: [\"mo del\"] is no section, the nearest one is [model]", "1, column 2"}};
  for (const BrokenToml& broken : table) {
    CAPTURE(broken.toml);
    CHECK_THAT(message_of<UsageError>([&] { read_assignments(broken.toml, "'run.toml'"); }),
               StartsWith(broken.said + "\n  in 'run.toml', line " + broken.place));
  }
}

TEST_CASE("values that are of no key's type are refused with key, value, line, column and file") {
  const std::string integer = "config: training.batch must be an integer, got ";
  const std::vector<BrokenToml> table{
      {"[training]\nbatch = 1979-05-27 # a day\n", integer + "'1979-05-27'", "2, column 1"},
      {"[training]\nbatch = 1979-05-27 07:32:00.5Z\n", integer + "'1979-05-27 07:32:00.5Z'", "2, column 1"},
      {"[training]\nx = 07:32:00\n", "config: 'training.x' is no key, those of [training] are batch, ", "2, column 1"},
      {"[schedule]\nlr = 0.1\n", "config: 'schedule.lr' is no key, those of [schedule] are rate, ", "2, column 1"},
      {"[training]\nbatch = nan\n", integer + "'nan'", "2, column 1"},
      {"training = { batch = 64.0 }\n", integer + "'64.0'", "1, column 14"},
      {"[training]\nbatch = 99999999999999999999\n", integer + "'99999999999999999999'", "2, column 1"},
      {"[training]\n batch = '''\n8'''\n", integer + "'\"8\"'", "2, column 2"},
      {"[training]\nspan_loss = -inf\n", "config: training.span_loss must be a number, got '-inf'", "2, column 1"},
      {"[model]\ncutoffs = [\n1, 2.5]\n", "config: model.cutoffs must be a list of integers, got '[1, 2.5]'",
       "2, column 1"},
      {"[model]\ncutoffs = [{ a = 1 }, [2]]\n", "config: model.cutoffs must be a list of integers, got '[{...}, [2]]'",
       "2, column 1"},
      {"hedas = 3\n", "config: 'hedas' is no key, the nearest one is 'model.heads'", "1, column 1"},
      {"\"model.width\" = 3\n", "config: '\"model.width\"' is no key, the nearest one is 'model.width'",
       "1, column 1"}};
  for (const BrokenToml& broken : table) {
    CAPTURE(broken.toml);
    const std::string said = message_of<UsageError>([&] { parse_run_config(broken.toml, "'run.toml'"); });
    CHECK_THAT(said, StartsWith(broken.said) && EndsWith("\n  in 'run.toml', line " + broken.place));
  }
}

TEST_CASE("keys of more parts than anybody writes are refused, not followed") {
  std::string key = "a";
  for (int i = 0; i < 200000; ++i) key += ".a";
  for (const std::string& toml : {"\n" + key + " = 1\n", "\n[" + key + "]\n"})
    CHECK_THAT(message_of<UsageError>([&] { read_assignments(toml, "'run.toml'"); }),
               ContainsSubstring("at most 5000 dots") && ContainsSubstring("\n  in 'run.toml', line 2, column 1000"));
  const std::string nested = "x = " + std::string(200000, '[');
  CHECK(message_of<UsageError>([&] { read_assignments(nested, "x"); }).size() < 1000);
}

}  // namespace
}  // namespace engram::config_toml_test
