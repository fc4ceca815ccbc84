#include "apps/run/evaluation/evaluation_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "apps/run/evaluation/score.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// With more digits than a progress line, and for words bits too.
std::string precise_text(data::TokenKind kind, const MeanLoss& loss) {
  const double bits = loss.all / std::numbers::ln2;
  if (kind == data::TokenKind::character) return fmt::format("bpc {:.6f}", bits);
  const std::string all = fmt::format("bits {:.6f}  {} {:.7g}", bits, score_name(kind), std::exp(loss.all));
  const std::string eol = loss.no_eol ? fmt::format("  ppl_no_eol {:.7g}", std::exp(*loss.no_eol)) : "";
  return all + eol +
         (loss.no_certain_marks ? fmt::format("  ppl_no_certain_marks {:.7g}", std::exp(*loss.no_certain_marks)) : "");
}

/// What does not depend on what a token is: a line, or nothing where it is not known.
std::string text_loss_line(const data::TextAmount& text, std::int64_t tokens, double nll) {
  const TextLoss loss(text, tokens, nll);
  std::string line = loss.ppl_word ? fmt::format("ppl_word {:.7g}", *loss.ppl_word) : "";
  if (loss.bits_per_byte) line += fmt::format("{}bits_per_byte {:.6f}", line.empty() ? "" : "  ", *loss.bits_per_byte);
  if (line.empty()) return line;
  return line +
         fmt::format("  of {} words{}\n", text.words, text.bytes > 0 ? fmt::format(" and {} bytes", text.bytes) : "");
}

/// Of other windows it is another figure.
std::string name_in_windows(const EvaluationReport& report) {
  return text(report.kind == data::TokenKind::subword ? "ppl_bpe_window" : "ppl_window", report.window);
}

std::uint64_t mapped_bytes(const EvaluationReport& report) {
  return std::accumulate(report.mapped.begin(), report.mapped.end(), std::uint64_t{0});
}

}  // namespace

std::optional<double> EvaluationReport::words_per_second() const {
  if (!amount || amount->words == 0) return std::nullopt;
  return words_in(*amount, tokens) * result.tokens_per_second() * static_cast<double>(result.scored) /
         static_cast<double>(result.inputs);
}

std::string table_of(const EvaluationReport& report) {
  std::string lines = fmt::format("{} at step {}, split {}, {} evaluation with {} {}\n", report.checkpoint, report.step,
                                  report.split, report.way, report.rows, report.rows == 1 ? "stream" : "streams");
  if (report.averaged_over > 0)
    lines += fmt::format("the weights are the mean of those of {} updates (training.weight_average)\n",
                         report.averaged_over);
  if (const NeuralCacheOptions& cache = report.cache; cache.positions > 0)
    lines +=
        fmt::format("with a cache of {} positions, theta {}, lambda {}\n", cache.positions, cache.theta, cache.lambda);
  if (!report.mapped.empty())
    lines +=
        fmt::format("{} mapped from {}, {:.2f} GiB in all\n", report.mapped.size() == 1 ? "a table is" : "tables are",
                    report.mapped.size() == 1 ? "a file" : text(report.mapped.size(), " files"),
                    static_cast<double>(mapped_bytes(report)) / double(1 << 30));
  const std::optional<double> words = report.words_per_second();
  lines += fmt::format("nll {:.6f} nats  {}\n", report.loss.all, precise_text(report.kind, report.loss));
  if (report.window > 0) lines += fmt::format("{} {:.7g}\n", name_in_windows(report), std::exp(report.loss.all));
  if (report.amount) lines += text_loss_line(*report.amount, report.tokens, report.loss.all);
  return lines + fmt::format("scored {} of {} tokens  {:.0f} tokens/s{}\n", report.result.scored, report.tokens,
                             report.result.tokens_per_second(), words ? fmt::format("  {:.0f} words/s", *words) : "");
}

nlohmann::json json_of(const EvaluationReport& report) {
  nlohmann::json object = loss_json(report.kind, report.loss);
  object.update({{"checkpoint", report.checkpoint},
                 {"step", report.step},
                 {"split", report.split},
                 {"way", report.way},
                 {"batch", report.rows},
                 {"tokens", report.result.scored},
                 {"tokens_in_split", report.tokens},
                 {"tokens_per_second", report.result.tokens_per_second()}});
  if (const std::optional<double> words = report.words_per_second()) object["words_per_second"] = *words;
  if (report.averaged_over > 0) object["averaged_updates"] = report.averaged_over;
  if (report.window > 0) object[name_in_windows(report)] = std::exp(report.loss.all);
  if (const NeuralCacheOptions& cache = report.cache; cache.positions > 0)
    object["cache"] = {{"positions", cache.positions}, {"theta", cache.theta}, {"lambda", cache.lambda}};
  if (report.amount) object.update(amount_json(*report.amount, report.tokens, report.loss.all));
  if (!report.mapped.empty())
    object.update({{"mapped_tables", report.mapped.size()}, {"mapped_bytes", mapped_bytes(report)}});
  return object;
}

}  // namespace engram
