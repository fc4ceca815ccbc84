/// What runs, sweeps and studies are said by and leave behind.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/report/csv_table.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/report_lines.hpp"
#include "apps/run/weights/transfo_xl_config.hpp"
#include "apps/studies/comparisons/study_file.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/studies/page/run_log.hpp"
#include "apps/studies/sweeps/ordering.hpp"
#include "apps/studies/sweeps/rank_results.hpp"
#include "apps/studies/tensorboard/tensorboard_export.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

/// A configuration that was read must be written so that it is read again.
void write_again(const RunConfig& config) {
  const std::string written = to_toml(config);
  if (to_toml(parse_run_config(written, "written")) != written)
    throw std::logic_error("a configuration must be read as it was written:\n" + written);
}

}  // namespace

void read_config(std::string_view bytes) {
  const std::string toml(bytes);
  refuses([&] { write_again(parse_run_config(toml, "run.toml")); });
  refuses([&] { parse_model_config(toml, "run.toml"); });
  refuses([&] { given_keys(toml, "run.toml"); });
}

void read_setting(std::string_view bytes) {
  constexpr const char* kFamilies[] = {"all_attention", "transformer_xl", "product_key", "recurrent"};
  const std::string setting(bytes);
  for (const std::string family : kFamilies)
    refuses([&] {
      write_again(parse_run_config("[model]\nfamily = \"" + family + "\"\n[schedule]\nsteps = 10\nrate = 0.1\n",
                                   "a.toml", {setting}));
    });
  refuses([&] {
    nlohmann::json config = nlohmann::json::object();
    apply_settings(config, {setting});
  });
}

void read_study_file(std::string_view bytes) {
  refuses([&] { parse_study(bytes, "input.study"); });
}

void read_metrics_log(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes, "metrics.jsonl");
  const auto take = [](const nlohmann::json& line) {
    line.dump(-1, ' ', false, nlohmann::json::error_handler_t::strict);
  };
  // Who needs every line is told of a wrong one as well, by exceptions of the JSON library: docs of read_metrics().
  for (const auto& read : {+[](const std::filesystem::path& file) { read_reports(file, "train"); },
                           +[](const std::filesystem::path& file) { training_seconds(file, 100); },
                           +[](const std::filesystem::path& file) { read_run_end(file); }})
    refuses([&] { read(path); });
  refuses([&] { take_reports(path, take); });
  refuses([&] { run_events(path); });
  Page page;
  page.runs.push_back(open_run({.name = "input", .folder = scratch_folder(), .checkpoint = {}}));
  refuses([&] {
    std::vector<RunSummary> runs;
    for (const PageRun& run : page.runs) runs.push_back(summary_of(run));
    head_html(page, runs);
    loss_svg(page, runs);
    loss_notes(page, runs);
    live_json_of(page, {true});
  });
}

void read_sweep_table(std::string_view bytes) {
  // A first line of its own: claims, with "|" between two.
  const std::string_view claims = bytes.substr(0, bytes.find('\n'));
  const std::string_view table = bytes.substr(std::min(bytes.size(), claims.size() + 1));
  refuses([&] {
    const CsvTable csv = parse_csv(table, "sweep.csv");
    std::vector<JudgedClaim> judged;
    for (std::size_t at = 0; at <= claims.size() && judged.size() < 8;) {
      const std::size_t end = std::min(claims.find('|', at), claims.size());
      refuses([&] { judged.push_back(judge(parse_claim(claims.substr(at, end - at)), csv)); });
      at = end + 1;
    }
    table_of(judged);
    json_of(judged).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
  refuses([&] { result_of_text(table); });
}

void read_foreign_config(std::string_view bytes) {
  TransfoXlFacts facts;
  facts.equal = [](const std::string&, const std::string&) { return true; };
  refuses([&] {
    const nlohmann::json config = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) return;
    for (const bool original : {false, true}) {
      facts.original_program = original;
      refuses([&] {
        const TransfoXlConfig read = read_transfo_xl_config(config, facts, "config.json");
        transfo_xl_config_json(read, -1);
      });
    }
  });
}

}  // namespace engram::fuzz
