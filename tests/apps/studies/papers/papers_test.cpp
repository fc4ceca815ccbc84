/// The lists of the papers' rows, held against configurations, data sets and pages; what `engram papers` says.

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/studies/papers/paper_report.hpp"
#include "apps/terminal/terminal.hpp"
#include "core/error.hpp"
#include "nn/models/model_options.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/studies/papers/papers_page.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::papers_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ENGRAM_SOURCE_DIR;

/// Every row of every table.
template <class Look>
void for_each_row(const Look& look) {
  for (const Paper& paper : all_papers())
    for (const PaperTable& table : paper.tables)
      for (const PaperRow& row : table.rows) look(paper, table, row);
}

/// What the papers count: of recurrent models without the vectors of the input, where these are a table of their own.
std::int64_t counted(const RunConfig& config) {
  const std::int64_t total = count_parameters(*make_model(config.model)).total;
  if (config.model.family != ModelFamily::recurrent) return total;
  const RecurrentOptions& model = config.model.recurrent;
  if (model.tie_tables || !model.cutoffs.empty()) return total;
  return total - model.vocabulary * model.embedding_width;
}

/// Whether a number of parameters is the printed one, "39M" or "0.46B", rounded to as many digits as are printed.
bool is_printed(std::int64_t parameters, const std::string& printed) {
  static const std::regex form("(\\d+)(?:\\.(\\d+))?([MB])");
  std::smatch match;
  REQUIRE(std::regex_match(printed, match, form));
  const double scale = std::pow(10.0, static_cast<double>(match[2].length())) / (match[3] == "M" ? 1e6 : 1e9);
  return std::llround(static_cast<double>(parameters) * scale) == std::stoll(match[1].str() + match[2].str());
}

/// The widest line of a text, in columns of a terminal, but for lines that are one word.
std::string widest(const std::string& written) {
  std::istringstream lines(written);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (columns_of(line) > columns_of(found)) found = line;
  return found;
}

}  // namespace

TEST_CASE("papers: a number of parameters is held against what is printed", "[papers]") {
  CHECK(is_printed(38'501'725, "39M"));
  CHECK_FALSE(is_printed(38'499'999, "39M"));
  CHECK(is_printed(1'025'499'999, "1.0B"));
  CHECK_FALSE(is_printed(466'962'290, "0.46B"));
  CHECK(is_printed(23'902'656, "23.9M"));
}

TEST_CASE("papers: every named config is there, parses, and has the number of parameters that is listed", "[papers]") {
  std::size_t configs = 0;
  for_each_row([&](const Paper& paper, const PaperTable& table, const PaperRow& row) {
    if (row.config.empty()) return;
    INFO(paper.name << ", " << table.table << ", " << row.row << ": " << row.config);
    const RunConfig config = load_run_config(kRoot / "apps/configs" / (row.config + ".toml"), row.set);
    // The vocabulary of the Children's Book Test is that of its books, which are not known here.
    const bool counts = config.model.vocabulary() != 0;
    CHECK((row.counted != 0) == counts);
    ++configs;
    if (!counts) return;
    CHECK(counted(config) == row.counted);
    if (row.parameters.empty()) {
      CHECK(row.deviates.empty());
      return;
    }
    INFO(row.counted << " parameters where " << row.parameters << " are printed");
    CHECK(is_printed(row.counted, row.parameters) == row.deviates.empty());
  });
  CHECK(configs > 150);
}

TEST_CASE("papers: every config of a paper is in a row", "[papers]") {
  std::set<std::string> listed;
  for_each_row([&](const Paper&, const PaperTable&, const PaperRow& row) { listed.insert(row.config); });
  for (const char* family : {"all-attention", "transformer-xl", "product-key", "key-value-predict"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "apps/configs" / family)) {
      if (entry.path().extension() != ".toml" || entry.path().stem().string().starts_with("kjv")) continue;
      const std::string name = fs::relative(entry.path(), kRoot / "apps/configs").replace_extension().generic_string();
      INFO(name << " is in no table; apps/studies/papers/" << family << ".json has 'beside the tables' for such");
      CHECK(listed.contains(name));
    }
}

TEST_CASE("papers: data sets, scripts and measurements that rows name are there", "[papers]") {
  const std::string sets = get_file(kRoot / "apps/data_sets.txt");
  const auto check_data = [&](const std::string& name) {
    INFO(name);
    CHECK((name.empty() || name == "DATA" || sets.find("\ndata " + name + " ") != std::string::npos));
  };
  for (const Paper& paper : all_papers()) {
    CHECK(fs::exists(kRoot / "docs/guide" / paper.guide));
    for (const PaperTable& table : paper.tables) {
      INFO(paper.name << ", " << table.table);
      check_data(table.data);
      if (!table.script.empty()) CHECK(fs::exists(kRoot / "apps/configs" / table.script));
      CHECK((table.where.empty() ||
             fs::exists(kRoot / "docs/measurements" / table.where.substr(0, table.where.find('#')))));
      // A figure of ours comes with its size.
      for (const PaperRow& row : table.rows) {
        check_data(row.data);
        CHECK((row.ours.empty() || row.ours == "not at this size" || !table.ours.empty()));
      }
    }
  }
}

TEST_CASE("papers: the page is what the lists say today", "[papers]") {
  INFO("docs/reference/papers.md is made anew by: engram_tests_apps \"write the page of papers\"");
  CHECK(get_file(kRoot / "docs/reference/papers.md") == papers_page());
}

TEST_CASE("papers: the command says it all in 80 columns", "[papers]") {
  for (const Paper& paper : all_papers()) {
    const std::string rows = table_of(PaperReport{&paper, {}});
    INFO(widest(rows));
    CHECK(columns_of(widest(rows)) <= 80);
    for (const PaperTable& table : paper.tables) {
      const std::string whole = table_of(PaperReport{&paper, {&table}});
      INFO(widest(whole));
      CHECK(columns_of(widest(whole)) <= 80);
      CHECK_THAT(rows, ContainsSubstring("\n" + table.table + ": " + table.title));
    }
  }
  const std::string all = table_of(PaperReport{});
  INFO(widest(all));
  CHECK(columns_of(widest(all)) <= 80);
}

TEST_CASE("papers: tables are found by their names or numbers", "[papers]") {
  const auto names = [](const char* paper, const char* wanted) {
    std::string all;
    for (const PaperTable* table : tables_named(paper_named(paper), wanted)) all += table->table + ";";
    return all;
  };
  CHECK(names("transformer-xl", "6") == "table 6;");
  CHECK(names("transformer-xl", "table 1") == "table 1;");
  CHECK(names("transformer-xl", "1") == "table 1;figure 1;");
  CHECK(names("all-attention", "figure 2") == "figure 2, left;figure 2, right;");
  CHECK(names("key-value-predict", "2 (d)") == "figure 2 (d);");
  CHECK_THROWS_WITH(tables_named(paper_named("product-key"), "9"),
                    ContainsSubstring("got '9'; there are\n  section 4.1"));
  CHECK_THROWS_AS(tables_named(paper_named("product-key"), ""), UsageError);
  CHECK_THROWS_WITH(paper_named("bert"), ContainsSubstring("must be one of all-attention, transformer-xl"));
}

TEST_CASE("papers: the command line, as text and as JSON", "[papers][night]") {
  const ProcessResult table = run_engram({"papers", "all-attention", "--table", "figure 2, left"});
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("--config apps/configs/all-attention/figure-2/text8-slots-0.toml"));
  CHECK_THAT(table.out, !ContainsSubstring("enwik8"));
  const nlohmann::json object = json_of({"papers", "transformer-xl", "--table", "7", "--json"});
  REQUIRE(object.at("papers").size() == 1);
  const nlohmann::json& rows = object.at("papers")[0].at("tables").at(0).at("rows");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("config") == "transformer-xl/lm1b-ablation");
  CHECK(rows[0].at("published") == nlohmann::json{"25.2"});
  CHECK(rows[0].at("counted") == 299'108'210);
  CHECK(rows[0].at("commands").at(2) ==
        "engram evaluate runs/papers/transformer-xl/lm1b-ablation --data runs/data/lm1b-sentences --split valid "
        "--block 32");
  CHECK(json_of({"papers", "--json"}).at("papers").size() == 4);
  CHECK_THAT(error_of({"papers", "bert"}, 2), ContainsSubstring("got 'bert'"));
  CHECK_THAT(error_of({"papers", "--table", "1"}, 2), ContainsSubstring("--table"));
}

TEST_CASE("papers: a list that is none is refused", "[papers]") {
  const std::string begin = R"({"name": "a", "title": "b", "authors": "c", "year": 1, "guide": "d", "tables": [)",
                    table = R"({"table": "1", "title": "e", "columns": ["x"], "rows": [)";
  CHECK(parse_paper(begin + table + R"({"row": "f", "published": ["1"], "config": "g"}]}]})").tables.size() == 1);
  const auto refused = [&](const std::string& rest, const char* why) {
    CHECK_THROWS_WITH(parse_paper(begin + rest), ContainsSubstring(why));
  };
  refused("", "must be JSON");
  refused(R"({"table": "1"}]})", "a table of a must have 'title', got none");
  refused(table + R"({"row": "f"}]}]})", "must have either 'config' or 'left_out', got neither");
  refused(table + R"({"row": "f", "config": "g", "left_out": "h"}]}]})", "got both");
  refused(table + R"({"row": "f", "config": "g", "publshed": ["1"]}]}]})", "'publshed' of a row of 1 of a");
  refused(table + R"({"row": "f", "config": "g", "published": ["1", "2"]}]}]})",
          "must have 1 published numbers or none");
  refused(table + R"({"row": "f", "config": 3}]}]})", "is of another type");
}

// Hidden because it makes the page that a case above compares with; it writes only where it is named (put_into_tree).
TEST_CASE("write the page of papers", "[.]") {
  source_tree::put_into_tree(kRoot / "docs/reference/papers.md", papers_page());
}

}  // namespace engram::harness::papers_test
