#include "apps/run/evaluation/loss_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "apps/run/evaluation/score.hpp"
#include "core/files/json.hpp"

namespace engram {

PartialLoss PartialLoss::without_ends(data::TokenView tokens, const data::Vocabulary& vocabulary) {
  return {tokens, vocabulary.kind() == data::TokenKind::word ? vocabulary.end_token() : -1, false};
}

PartialLoss PartialLoss::without_certain_marks(data::TokenView tokens, std::int32_t doubled_mark) {
  return {tokens, doubled_mark, true};
}

void PartialLoss::add(std::int64_t token, double nll) {
  if (left_out_ < 0) return;
  if (tokens_[token] == left_out_ && (!only_doubled_ || tokens_[token - 1] == left_out_)) return;
  sum_ += nll;
  ++count_;
}

std::optional<double> PartialLoss::mean() const {
  return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
}

nlohmann::json loss_json(data::TokenKind kind, const MeanLoss& loss) {
  const double bits = loss.all / std::numbers::ln2;
  if (kind == data::TokenKind::character) return {{"nll", loss.all}, {"bpc", bits}};
  nlohmann::json json{{"nll", loss.all}, {"bits", bits}, {std::string(score_name(kind)), std::exp(loss.all)}};
  if (loss.no_eol) json["ppl_no_eol"] = std::exp(*loss.no_eol);
  if (loss.no_certain_marks) json["ppl_no_certain_marks"] = std::exp(*loss.no_certain_marks);
  return json;
}

std::string loss_text(data::TokenKind kind, const MeanLoss& loss) {
  if (kind == data::TokenKind::character) return fmt::format("bpc {:.4f}", loss.all / std::numbers::ln2);
  const std::string all = fmt::format("{} {:#.5g}", score_name(kind), std::exp(loss.all));
  return loss.no_eol ? fmt::format("{} ppl_no_eol {:#.5g}", all, std::exp(*loss.no_eol)) : all;
}

double words_in(const data::TextAmount& text, std::int64_t tokens) {
  return static_cast<double>(text.words) / static_cast<double>(tokens);
}

nlohmann::json amount_json(const data::TextAmount& text, std::int64_t tokens, double nll) {
  nlohmann::json json{{"words_in_split", text.words}, {"bytes_in_split", text.bytes}};
  const TextLoss loss(text, tokens, nll);
  if (loss.ppl_word) json["ppl_word"] = *loss.ppl_word;
  if (loss.bits_per_byte) json["bits_per_byte"] = *loss.bits_per_byte;
  return json;
}

TextLoss::TextLoss(const data::TextAmount& text, std::int64_t tokens, double nll) {
  const double total = nll * static_cast<double>(tokens);
  if (text.words > 0) ppl_word = std::exp(total / static_cast<double>(text.words));
  if (text.bytes > 0) bits_per_byte = total / static_cast<double>(text.bytes) / std::numbers::ln2;
}

}  // namespace engram
