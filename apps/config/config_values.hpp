#pragma once
/// How the values of a configuration are written: TOML integers, floats, booleans, arrays of integers, and names in
/// quotes for choices.
/// Reading is strict: all of the text must be one value of the type, in its range, and finite.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "core/activation_precision.hpp"
#include "core/error.hpp"
#include "core/product_precision.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/optim/schedule.hpp"

namespace engram {

/// "adagrad", "adam" or "sgd".
std::string_view name_of(OptimizerKind kind);
/// "step" (the tensor's step is shrunk), "gradient" (the tensor's gradient is) or "global" (all gradients are).
std::string_view name_of(ClipKind kind);
/// "corrected" or "uncorrected".
std::string_view name_of(EpsilonAt at);
/// "adam" or "row_adagrad".
std::string_view name_of(TableKind kind);
/// "dense", "lazy", "row_step" or "deferred".
std::string_view name_of(TableMode mode);
/// "none", "linear", "cosine", "cosine_from_start", "inverse_root" or "plateau".
std::string_view name_of(Schedule::Decay decay);
/// "update", "completed" or "full_first".
std::string_view name_of(Schedule::Clock clock);
/// "mean" or "time_sum".
std::string_view name_of(LossScale scale);
/// "fixed" or "plateau".
std::string_view name_of(Schedule::Finetune finetune);
/// The inverses; they throw UsageError listing the valid names.
OptimizerKind parse_optimizer_kind(std::string_view name);
ClipKind parse_clip_kind(std::string_view name);
Schedule::Decay parse_decay(std::string_view name);

/// All values of a choice, for reading by name.
template <class T>
struct Choices;
template <>
struct Choices<ModelFamily> {
  static constexpr auto values = kModelFamilies;
};
template <>
struct Choices<PositionKind> {
  static constexpr PositionKind values[] = {PositionKind::relative, PositionKind::shaw,
                                            PositionKind::absolute_sinusoidal, PositionKind::absolute_learned};
};
template <>
struct Choices<ShawTerms> {
  static constexpr ShawTerms values[] = {ShawTerms::ab, ShawTerms::abcd};
};
template <>
struct Choices<Visibility> {
  static constexpr Visibility values[] = {Visibility::all, Visibility::last_memory, Visibility::last_memory_plus_1};
};
template <>
struct Choices<MemoryStart> {
  static constexpr MemoryStart values[] = {MemoryStart::empty, MemoryStart::zeros};
};
template <>
struct Choices<WeightStart> {
  static constexpr WeightStart values[] = {WeightStart::normal, WeightStart::uniform};
};
template <>
struct Choices<EmbeddingStart> {
  static constexpr EmbeddingStart values[] = {EmbeddingStart::as_weights, EmbeddingStart::normal,
                                              EmbeddingStart::uniform};
};
template <>
struct Choices<ClusterOrder> {
  static constexpr ClusterOrder values[] = {ClusterOrder::natural, ClusterOrder::reversed};
};
template <>
struct Choices<Activation> {
  static constexpr Activation values[] = {Activation::relu, Activation::gelu};
};
template <>
struct Choices<MemoryMode> {
  static constexpr MemoryMode values[] = {MemoryMode::all,         MemoryMode::attn_split, MemoryMode::head_split,
                                          MemoryMode::single_head, MemoryMode::ff_attn,    MemoryMode::none,
                                          MemoryMode::transformer};
};
template <>
struct Choices<SpanKind> {
  static constexpr SpanKind values[] = {SpanKind::adaptive, SpanKind::fixed, SpanKind::dynamic};
};
template <>
struct Choices<TableInit> {
  static constexpr TableInit values[] = {TableInit::unit, TableInit::scaled};
};
template <>
struct Choices<PositionValues> {
  static constexpr PositionValues values[] = {PositionValues::none, PositionValues::shared, PositionValues::own};
};
template <>
struct Choices<RampGradient> {
  static constexpr RampGradient values[] = {RampGradient::inclusive, RampGradient::right, RampGradient::open};
};
template <>
struct Choices<Pad> {
  static constexpr Pad values[] = {Pad::attend_zero, Pad::mask};
};
template <>
struct Choices<MemoryPlacement> {
  static constexpr MemoryPlacement values[] = {MemoryPlacement::replace, MemoryPlacement::beside,
                                               MemoryPlacement::after};
};
template <>
struct Choices<KeyKind> {
  static constexpr KeyKind values[] = {KeyKind::product, KeyKind::flat};
};
template <>
struct Choices<MemoryGate> {
  static constexpr MemoryGate values[] = {MemoryGate::none, MemoryGate::swish, MemoryGate::scalar};
};
template <>
struct Choices<ValueStart> {
  static constexpr ValueStart values[] = {ValueStart::normal, ValueStart::zeros};
};
template <>
struct Choices<QueryNetworkKind> {
  static constexpr QueryNetworkKind values[] = {QueryNetworkKind::linear, QueryNetworkKind::mlp,
                                                QueryNetworkKind::heads_mlp, QueryNetworkKind::identity};
};
template <>
struct Choices<QueryNorm> {
  static constexpr QueryNorm values[] = {QueryNorm::none, QueryNorm::batch, QueryNorm::layer, QueryNorm::rms,
                                         QueryNorm::l2};
};
template <>
struct Choices<RecurrentCell> {
  static constexpr RecurrentCell values[] = {RecurrentCell::lstm, RecurrentCell::rnn, RecurrentCell::hornn_fofe,
                                             RecurrentCell::hornn_gated};
};
template <>
struct Choices<ReadoutKind> {
  static constexpr ReadoutKind values[] = {ReadoutKind::identity,  ReadoutKind::attention,
                                           ReadoutKind::key_value, ReadoutKind::key_value_predict,
                                           ReadoutKind::n_gram,    ReadoutKind::recurrent_memory};
};
template <>
struct Choices<Carry> {
  static constexpr Carry values[] = {Carry::detached, Carry::none};
};
template <>
struct Choices<MissingPositions> {
  static constexpr MissingPositions values[] = {MissingPositions::masked, MissingPositions::zero};
};
template <>
struct Choices<LossScale> {
  static constexpr LossScale values[] = {LossScale::mean, LossScale::time_sum};
};
/// How a table's values are stored.
template <>
struct Choices<DType> {
  static constexpr DType values[] = {DType::f32, DType::bf16};
};
template <>
struct Choices<ProductPrecision> {
  static constexpr ProductPrecision values[] = {ProductPrecision::f32, ProductPrecision::bf16};
};
template <>
struct Choices<ActivationPrecision> {
  static constexpr ActivationPrecision values[] = {ActivationPrecision::f32, ActivationPrecision::bf16};
};
template <>
struct Choices<OptimizerKind> {
  static constexpr OptimizerKind values[] = {OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::sgd};
};
template <>
struct Choices<ClipKind> {
  static constexpr ClipKind values[] = {ClipKind::per_tensor_step, ClipKind::per_tensor_gradient, ClipKind::global};
};
template <>
struct Choices<EpsilonAt> {
  static constexpr EpsilonAt values[] = {EpsilonAt::corrected, EpsilonAt::uncorrected};
};
template <>
struct Choices<TableKind> {
  static constexpr TableKind values[] = {TableKind::adam, TableKind::row_adagrad};
};
template <>
struct Choices<TableMode> {
  static constexpr TableMode values[] = {TableMode::dense, TableMode::lazy, TableMode::row_step, TableMode::deferred};
};
template <>
struct Choices<Schedule::Finetune> {
  static constexpr Schedule::Finetune values[] = {Schedule::Finetune::fixed, Schedule::Finetune::plateau};
};
template <>
struct Choices<Schedule::Decay> {
  static constexpr Schedule::Decay values[] = {Schedule::Decay::none,         Schedule::Decay::linear,
                                               Schedule::Decay::cosine,       Schedule::Decay::cosine_from_start,
                                               Schedule::Decay::inverse_root, Schedule::Decay::plateau};
};
template <>
struct Choices<Schedule::Clock> {
  static constexpr Schedule::Clock values[] = {Schedule::Clock::update, Schedule::Clock::completed,
                                               Schedule::Clock::full_first};
};

template <class T>
inline constexpr bool kIsList = std::is_same_v<T, std::vector<std::int64_t>>;

/// What a value of type T must be, for messages: "an integer".
template <class T>
std::string value_rule() {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? "an integer" : "an integer from 0 on";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (kIsList<T>) {
    return "a list of integers";
  } else {
    std::string names;
    for (const T value : Choices<T>::values)
      names += text(names.empty() ? "" : ", ", '"' + std::string(name_of(value)) + '"');
    return "one of " + names;
  }
}

/// Integers with commas between them; brackets around them and spaces are allowed. The empty text is the empty list.
bool read_list(std::string_view written, std::vector<std::int64_t>& value);

/// Sets `value` and returns true when the text is one value of type T, else leaves it.
template <class T>
bool read_value(std::string_view written, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (written != "true" && written != "false") return false;
    value = written == "true";
    return true;
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (written.starts_with('+')) written.remove_prefix(1);
    T parsed{};
    const char* end = written.data() + written.size();
    const auto [rest, error] = std::from_chars(written.data(), end, parsed);
    if (error != std::errc() || rest != end) return false;
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(parsed)) return false;
    value = parsed;
    return true;
  } else if constexpr (kIsList<T>) {
    return read_list(written, value);
  } else {
    for (const T choice : Choices<T>::values) {
      if (name_of(choice) != written) continue;
      value = choice;
      return true;
    }
    return false;
  }
}

/// The shortest decimal text that reads back to the same number, marked as a TOML float.
std::string toml_number(double value);

/// [1, 2, 3]
std::string toml_list(const std::vector<std::int64_t>& values);

/// The value as TOML writes it.
template <class T>
std::string toml_value(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return toml_number(value);
  else if constexpr (std::is_arithmetic_v<T>)
    return text(value);
  else if constexpr (kIsList<T>)
    return toml_list(value);
  else
    return '"' + std::string(name_of(value)) + '"';
}

}  // namespace engram
